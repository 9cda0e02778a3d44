// MariaDB.

package dbproc

import (
	"maps"
	"path/filepath"
	"syscall"
	"testing"
)

// MariaDB starts a MariaDB server for a test. Its driver is "mysql", of
// github.com/go-sql-driver/mysql. The database "mysql" is there.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	socket := func(dir string) string { return filepath.Join(dir, "s") }
	return start(t, kind{
		name:   "mariadb",
		driver: "mysql",
		find: func() (map[string]string, error) {
			bin, err := find(nil, "mariadb-install-db")
			if err != nil {
				return nil, err
			}
			server, err := find([]string{"/usr/local/sbin", "/usr/sbin"}, "mariadbd") // not on everybody's PATH
			maps.Copy(bin, server)
			return bin, err
		},
		setup: func(bin map[string]string, dir string) []string {
			return []string{
				bin["mariadb-install-db"], "--no-defaults", "--datadir=" + filepath.Join(dir, "data"),
				"--auth-root-authentication-method=normal", "--skip-test-db",
			}
		},
		serve: func(bin map[string]string, dir string) []string {
			return []string{
				bin["mariadbd"], "--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--socket=" + socket(dir),
				"--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--max-connections=200",
			}
		},
		dsn: func(dir, database string) string {
			return "root@unix(" + socket(dir) + ")/" + database
		},
		first: "mysql",
		stop:  syscall.SIGTERM,
	})
}
