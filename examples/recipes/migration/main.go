// Migration starts four instances of a program at once, each of which brings the
// database up to date before it goes on. The database is an SQLite file that is removed
// at the end; the nodes are five in memory, or those of REDLOCK_NODES.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // registers "sqlite3"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

// None of these may be done twice.
var steps = []migration{
	`CREATE TABLE accounts (id INTEGER PRIMARY KEY, euros INTEGER NOT NULL)`,
	`INSERT INTO accounts VALUES (1, 100)`,
	`ALTER TABLE accounts RENAME COLUMN euros TO cents`,
	`UPDATE accounts SET cents = cents * 100`,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "migration:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	set, err := nodes.Open(10 * time.Second)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	dir, err := os.MkdirTemp("", "redlock-migration-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "app.db")

	var instances sync.WaitGroup
	for i := range 4 {
		instances.Go(func() {
			cents, err := start(ctx, set, file)
			fmt.Printf("instance %d is up: %d cents, error %v\n", i+1, cents, err)
		})
	}
	instances.Wait()
	return nil
}

// start is what each instance does.
func start(ctx context.Context, set *nodes.Nodes, file string) (cents int, err error) {
	client, err := set.Client()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }() //nolint:contextcheck // it bounds itself
	mutex, err := client.NewMutex("migrations of app.db")
	if err != nil {
		return 0, err
	}
	db, err := open(ctx, file)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := migrate(ctx, mutex, db, steps); err != nil && !released(err) {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT cents FROM accounts WHERE id = 1`).Scan(&cents)
	return cents, err
}

// released tells of an error that only says that the release was not confirmed. The
// work is done, and the lock ends with its TTL.
func released(err error) bool {
	q, ok := errors.AsType[*redlock.QuorumError](err)
	return ok && q.Op == "unlock" && !errors.Is(err, redlock.ErrNotHeld)
}

// open opens the database. Its own two tables may be made by several at once.
func open(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.ToSlash(file)+"?_pragma=busy_timeout(30000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		fence.SQLiteSchema,
		`CREATE TABLE IF NOT EXISTS schema_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL)`,
		`INSERT INTO schema_version VALUES (1, 0) ON CONFLICT DO NOTHING`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}
