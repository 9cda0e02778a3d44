// The same job with the ledger in a real PostgreSQL server.

package main

import (
	"testing"

	"github.com/quorumlock/redlock/internal/dbproc"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	dsn := startPostgres(t)
	t.Run("ledger", func(t *testing.T) {
		place, remove, err := newStore(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := remove(); err != nil {
				t.Error(err)
			}
		}()
		testFence(t, fill(t, place))
	})
	t.Run("run", func(t *testing.T) {
		r := runProgram(t, nil, "-dsn", dsn, "-ttl", "500ms", "-invoices", "80")
		r.wantExact(t, 80)
		r.wantTakeover(t)
	})
	t.Run("without locks", func(t *testing.T) {
		r := runProgram(t, nil, "-dsn", dsn, "-no-lock", "-invoices", "80")
		if twice := r.row(t, "billed twice"); r.code != exitFailed || twice == "0" {
			t.Errorf("exit code %d, billed twice: %q", r.code, twice)
		}
	})
	wantNoSchema(t, dsn)
}

func TestPostgresChaos(t *testing.T) {
	t.Parallel()
	dsn := startPostgres(t)
	testChaos(t, "-dsn", dsn)
	wantNoSchema(t, dsn)
}

// startPostgres returns the DSN of a server that lives as long as the test.
func startPostgres(t *testing.T) string {
	t.Helper()
	return dbproc.Postgres(t).DSN("postgres")
}

// wantNoSchema checks that no run has left its schema behind.
func wantNoSchema(t *testing.T, dsn string) {
	t.Helper()
	var left int
	err := open(t, store{DSN: dsn}).db.QueryRowContext(t.Context(),
		`SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'redlock_billing_%'`).Scan(&left)
	if err != nil || left > 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}
