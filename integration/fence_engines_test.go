// The databases on which the fencing guards are tested, and what differs in them.

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/driver" // registers "sqlite3"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/dbproc"
)

// An engine is a kind of database.
type engine struct {
	fence.Dialect

	serial string // definition of a key column that numbers rows in the order of their inserts

	// setups are settings of driver and server that could change what a guard
	// sees, by name. There is always "default".
	setups map[string]string

	// levels are what transactions are begun with.
	levels []sql.IsolationLevel

	// open returns a new, empty database with one of the setups.
	open func(t *testing.T, setup string) *sql.DB

	// again tells whether an error means that the transaction may be run again.
	again func(error) bool
}

// engines returns what starts each of them, by name.
func engines() map[string]func(*testing.T) *engine {
	return map[string]func(*testing.T) *engine{"postgres": postgres, "mariadb": mariadb, "sqlite": sqlite}
}

func postgres(t *testing.T) *engine {
	t.Helper()
	e := &engine{
		Dialect: fence.Postgres,
		serial:  "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		levels:  []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		setups: map[string]string{
			"default":         "",
			"describe_exec":   " default_query_exec_mode=describe_exec",
			"exec":            " default_query_exec_mode=exec",
			"simple_protocol": " default_query_exec_mode=simple_protocol",
		},
		again: func(err error) bool {
			pg, ok := errors.AsType[*pgconn.PgError](err)
			return ok && (pg.Code == "40001" || pg.Code == "40P01") // serialization failure, deadlock
		},
	}
	server := dbproc.Postgres(t)
	admin := openDB(t, "pgx", server.DSN("postgres"))
	e.open = func(t *testing.T, setup string) *sql.DB {
		t.Helper()
		return openDB(t, "pgx", server.DSN(newDatabase(t, admin))+e.setups[setup])
	}
	return e
}

func mariadb(t *testing.T) *engine {
	t.Helper()
	e := &engine{
		Dialect: fence.MySQL,
		serial:  "BIGINT AUTO_INCREMENT PRIMARY KEY",
		levels: []sql.IsolationLevel{
			sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
		},
		setups: map[string]string{
			"default":     "",
			"found rows":  "?clientFoundRows=true",
			"interpolate": "?interpolateParams=true",
			"both":        "?clientFoundRows=true&interpolateParams=true",
			"backslashes": "?interpolateParams=true&sql_mode=" + url.QueryEscape("'ANSI,NO_BACKSLASH_ESCAPES'"),
			"strict":      "?sql_mode=" + url.QueryEscape("'TRADITIONAL,ANSI,ONLY_FULL_GROUP_BY'"),
			"snapshot":    "?innodb_snapshot_isolation=ON", // the default of later versions
		},
		again: func(err error) bool {
			my, ok := errors.AsType[*mysql.MySQLError](err)
			return ok && (my.Number == 1213 || my.Number == 1205 || my.Number == 1020) // deadlock, lock timeout, snapshot too old
		},
	}
	server := dbproc.MariaDB(t)
	admin := openDB(t, "mysql", server.DSN("mysql"))
	e.open = func(t *testing.T, setup string) *sql.DB {
		t.Helper()
		return openDB(t, "mysql", server.DSN(newDatabase(t, admin))+e.setups[setup])
	}
	return e
}

func sqlite(*testing.T) *engine {
	e := &engine{
		Dialect: fence.SQLite,
		serial:  "INTEGER PRIMARY KEY AUTOINCREMENT",
		levels:  []sql.IsolationLevel{sql.LevelDefault, sql.LevelSerializable},
		setups: map[string]string{
			"default":          "_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)&_txlock=deferred",
			"immediate":        "_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)",
			"rollback journal": "_pragma=busy_timeout(60000)&_pragma=journal_mode(delete)&_pragma=synchronous(off)&_txlock=deferred",
		},
		again: func(err error) bool { return errors.Is(err, sqlite3.BUSY) },
	}
	e.open = func(t *testing.T, setup string) *sql.DB {
		t.Helper()
		path := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(t.TempDir(), "db")), RawQuery: e.setups[setup]}
		db := openDB(t, "sqlite3", path.String())
		// The change to a write-ahead log waits for nobody: two connections that
		// open a new file at once would meet "database is locked".
		if err := db.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return db
	}
	return e
}

func openDB(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(goroutines)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

var databases atomic.Int32

func newDatabase(t *testing.T, admin *sql.DB) string {
	t.Helper()
	name := fmt.Sprintf("fence_%d", databases.Add(1))
	mustExec(t, admin, "CREATE DATABASE "+name)
	return name
}

// fenced returns a new database with the guard's table in it.
func (e *engine) fenced(t *testing.T, setup string) *sql.DB {
	t.Helper()
	db := e.open(t, setup)
	if err := e.CreateTable(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

// sql writes placeholders as the engine wants them.
func (e *engine) sql(query string) string {
	if e.Dialect != fence.Postgres {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}

func mustExec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// stored returns what the guard's table holds: the tokens by resource name.
func stored(t *testing.T, db *sql.DB) map[string]int64 {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT resource, token FROM redlock_fence")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	tokens := make(map[string]int64)
	for rows.Next() {
		var resource string
		var token int64
		if err := rows.Scan(&resource, &token); err != nil {
			t.Fatal(err)
		}
		tokens[resource] = token
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tokens
}
