// PostgreSQL.

package dbproc

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
)

// Postgres starts a PostgreSQL server for a test. Its driver is "pgx", of
// github.com/jackc/pgx/v5/stdlib. The database "postgres" is there.
func Postgres(t testing.TB) *Server {
	t.Helper()
	return start(t, postgres("-c", "fsync=off"))
}

// LaunchPostgres is Postgres for a program, which must Close the server. ctx bounds
// the start only. If there is none installed, the error is [exec.ErrNotFound].
func LaunchPostgres(ctx context.Context, args ...string) (*Server, error) {
	return launch(ctx, postgres(args...))
}

func postgres(args ...string) kind {
	return kind{
		name:   "postgres",
		driver: "pgx",
		find: func() (map[string]string, error) {
			folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian's
			return find(folders, "initdb", "postgres")
		},
		setup: func(bin map[string]string, dir string) []string {
			return []string{
				bin["initdb"], "-D", filepath.Join(dir, "data"), "-U", "test",
				"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync",
			}
		},
		serve: func(bin map[string]string, dir string) []string {
			return append([]string{
				bin["postgres"], "-D", filepath.Join(dir, "data"), "-k", dir,
				"-c", "listen_addresses=", "-c", "max_connections=200",
				"-c", "log_min_messages=fatal", // tests provoke errors by the thousand
			}, args...)
		},
		dsn: func(dir, database string) string {
			return fmt.Sprintf("host=%s user=test dbname=%s sslmode=disable", dir, database)
		},
		first: "postgres",
		stop:  syscall.SIGINT, // "fast": clients are disconnected
	}
}
