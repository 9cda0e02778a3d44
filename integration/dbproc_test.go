// The servers of package dbproc, which brings no drivers: they answer, and leave
// nothing behind.

package integration_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/dbproc"
)

func TestServers(t *testing.T) {
	for name, server := range map[string]struct {
		start            func(testing.TB) *dbproc.Server
		driver, database string
	}{
		"postgres": {dbproc.Postgres, "pgx", "postgres"},
		"mariadb":  {dbproc.MariaDB, "mysql", "mysql"},
	} {
		t.Run(name, func(t *testing.T) {
			var s *dbproc.Server
			open := func(t *testing.T) *sql.DB {
				t.Helper()
				db, err := sql.Open(server.driver, s.DSN(server.database))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				return db
			}
			t.Run("run", func(t *testing.T) {
				s = server.start(t)
				var version string
				if err := open(t).QueryRowContext(t.Context(), "SELECT version()").Scan(&version); err != nil {
					t.Fatal(err)
				}
				t.Log(version)
			})
			if s == nil {
				t.Skip("not started")
			}
			if err := open(t).PingContext(t.Context()); err == nil {
				t.Error("the server outlived its test")
			}
			if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
				t.Errorf("its files outlived its test: %v", err)
			}
		})
	}
}
