// Changes of a schema that many instances of a program want to make when they start.

package main

import (
	"context"
	"database/sql"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

// A migration is one statement; its number is its place in the list, from 1 on.
type migration string

// migrate brings the database up to the last of steps. Instances that come meanwhile
// wait, and then find nothing to do.
//
// The lock keeps them from doing the work at the same time. What makes each step happen
// once is the version, which is written in the step's own transaction, and that a holder
// whose lease is over is refused there. So a step must fit into one transaction. MySQL
// commits at each DDL statement by itself: there, a step must be fit to be done twice.
func migrate(ctx context.Context, mutex *redlock.Mutex, db *sql.DB, steps []migration) error {
	return mutex.Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
		for {
			done, err := apply(ctx, db, l, steps)
			if err != nil || done {
				return err
			}
		}
	})
}

// apply does the next step, and reports whether there was none.
func apply(ctx context.Context, db *sql.DB, l *redlock.Lease, steps []migration) (done bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := fence.SQLite.Check(ctx, tx, l.Name(), l.FencingToken()); err != nil {
		return false, err // somebody else has had the lock since
	}
	var version int
	if err := tx.QueryRowContext(ctx, `SELECT version FROM schema_version`).Scan(&version); err != nil || version >= len(steps) {
		return true, err
	}
	if _, err := tx.ExecContext(ctx, string(steps[version])); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE schema_version SET version = version + 1`); err != nil {
		return false, err
	}
	return false, tx.Commit()
}
