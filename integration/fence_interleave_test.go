// Two transactions that check the same resource, in every interleaving.

package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock/fence"
)

// testInterleavings lets transaction A check, then B, which has to wait for the
// end of A. B must then answer as if it had begun after that end, or, where the
// isolation level does not allow this, with an error that says "run it again".
func (e *engine) testInterleavings(t *testing.T) {
	db := e.fenced(t, "default")
	n := 0
	for _, level := range e.levels {
		for _, before := range []int64{0, 5} { // stored; 0: no row
			for _, a := range []int64{4, 5, 6} {
				for _, b := range []int64{4, 5, 6} {
					for _, commit := range []bool{true, false} {
						n++
						c := interleaving{e, db, level, fmt.Sprint("r", n), before, a, b, commit}
						t.Run(fmt.Sprintf("%v/stored=%d/a=%d/b=%d/commit=%v", level, before, a, b, commit), c.run)
					}
				}
			}
		}
	}
}

type interleaving struct {
	e        *engine
	db       *sql.DB
	level    sql.IsolationLevel
	resource string
	before   int64
	a, b     int64
	commit   bool // A, else it rolls back
}

func (c interleaving) run(t *testing.T) {
	if c.before > 0 {
		inTx(t, c.db, func(tx *sql.Tx) { verdict(t, c.e.Check(t.Context(), tx, c.resource, c.before), 0) })
	}
	highest := c.before
	txA := begin(t, c.db, c.level)
	verdict(t, c.e.Check(t.Context(), txA, c.resource, c.a), above(highest, c.a))

	// B begins before A ends, where the engine lets it.
	ended := make(chan error, 1)
	txB := make(chan *sql.Tx, 1)
	go func() {
		tx, err := c.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: c.level})
		if err != nil {
			ended <- err
			return
		}
		txB <- tx
		ended <- c.e.Check(t.Context(), tx, c.resource, c.b)
	}()
	c.awaitB(t, ended)
	end := txA.Rollback
	if c.commit {
		end = txA.Commit
		highest = max(highest, c.a)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}

	err := <-ended
	tx := <-txB
	defer func() { _ = tx.Rollback() }()
	if c.e.Dialect == fence.Postgres && c.level > sql.LevelReadCommitted && c.commit {
		if !c.e.again(err) {
			t.Fatalf("%v, want a serialization failure", err)
		}
		return
	}
	verdict(t, err, above(highest, c.b))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	highest = max(highest, c.b)
	if got := stored(t, c.db)[c.resource]; got != highest {
		t.Errorf("stored: %d, want %d", got, highest)
	}
}

// awaitB returns when B waits for A. Only PostgreSQL tells, and only there does
// the outcome depend on it. The others get some time to do it wrong.
func (c interleaving) awaitB(t *testing.T, ended <-chan error) {
	t.Helper()
	for began := time.Now(); ; {
		select {
		case err := <-ended:
			t.Fatalf("B did not wait for the end of A: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		waited := time.Since(began)
		if c.e.Dialect != fence.Postgres {
			if waited > 15*time.Millisecond {
				return
			}
			continue
		}
		const query = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		var waiting int
		if err := c.db.QueryRowContext(t.Context(), query).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
		if waited > 30*time.Second {
			t.Fatal("B neither waits nor ends")
		}
	}
}

// begin returns a transaction that ends with the test.
func begin(t *testing.T, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// above returns highest if it is above the token, which it then refuses.
func above(highest, token int64) int64 {
	if highest > token {
		return highest
	}
	return 0
}

// testFirstInsertRolledBack lets many transactions wait for the first row of a
// resource, and rolls that back. InnoDB ends some of them with a deadlock. What
// is accepted must be right in any case.
func (e *engine) testFirstInsertRolledBack(t *testing.T) {
	db := e.fenced(t, "default")
	failed := 0
	for round := range 20 {
		resource := fmt.Sprint("r", round)
		first, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		verdict(t, e.Check(t.Context(), first, resource, 100), 0)

		const waiters = 8
		type outcome struct {
			token int64
			err   error
		}
		outcomes := make(chan outcome, waiters)
		for i := range waiters {
			go func() {
				token := int64(i + 1)
				outcomes <- outcome{token, e.checkAndCommit(t.Context(), db, resource, token)}
			}()
		}
		time.Sleep(5 * time.Millisecond)
		if err := first.Rollback(); err != nil {
			t.Fatal(err)
		}
		var highest int64
		for range waiters {
			switch o := <-outcomes; {
			case o.err == nil:
				highest = max(highest, o.token)
			case e.again(o.err):
				failed++
			default:
				// Refused, then, because of one of the others.
				stale := staleError(t, o.err)
				if stale.Highest > waiters {
					t.Errorf("refused because of %d, which was rolled back", stale.Highest)
				}
			}
		}
		if got := stored(t, db)[resource]; got != highest || got == 0 {
			t.Errorf("stored: %d, the highest that was accepted: %d", got, highest)
		}
	}
	t.Logf("%d of %d waiters were told to run again", failed, 20*8)
}

func (e *engine) checkAndCommit(ctx context.Context, db *sql.DB, resource string, token int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := e.Check(ctx, tx, resource, token); err != nil {
		return err
	}
	return tx.Commit()
}
