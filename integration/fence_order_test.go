// Many callers with shuffled tokens: what is accepted never goes down.

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/fence"
)

// A check presents a token in a transaction.
type check func(ctx context.Context, tx *sql.Tx, resource string, token int64) error

func (e *engine) testOrder(t *testing.T) {
	for _, level := range e.levels {
		t.Run(level.String(), func(t *testing.T) {
			o := e.order(t, "default", level, e.Check)
			o.report(t)
			if o.falls > 0 {
				t.Errorf("an accepted token was below the one before it, %d times", o.falls)
			}
			if o.highest != o.stored {
				t.Errorf("the highest accepted token is %d, the stored one %d", o.highest, o.stored)
			}
			strict := e.Dialect == fence.Postgres && level > sql.LevelReadCommitted
			if o.failed > 0 && !strict {
				t.Errorf("%d transactions were told to run again, where waiting is enough", o.failed)
			}
			if !strict && o.highest != o.presented {
				t.Errorf("the highest token, %d, was not accepted", o.presented)
			}
			if o.accepted < 20 || o.refused < 20 {
				t.Errorf("too few of both to prove anything")
			}
		})
	}
	for setup := range e.setups {
		if setup == "default" {
			continue
		}
		t.Run(setup, func(t *testing.T) {
			o := e.order(t, setup, sql.LevelDefault, e.Check)
			o.report(t)
			if o.falls > 0 || o.highest != o.stored {
				t.Errorf("an accepted token was below the one before it, %d times; stored: %d", o.falls, o.stored)
			}
		})
	}
}

// testOrderBites shows that the test above finds a guard that is not atomic.
func (e *engine) testOrderBites(t *testing.T) {
	if e.Dialect == fence.SQLite {
		t.Skip("SQLite has one writer at a time, and fails one that has read too early: nothing to find")
	}
	var o *order
	for range 10 {
		if o = e.order(t, "default", sql.LevelReadCommitted, e.readThenWrite); o.falls > 0 {
			break
		}
	}
	o.report(t)
	if o.falls == 0 {
		t.Error("a guard that reads, compares and then writes went unnoticed")
	}
}

// readThenWrite is a guard as it should not be.
func (e *engine) readThenWrite(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	var highest int64
	err := tx.QueryRowContext(ctx, e.sql("SELECT token FROM redlock_fence WHERE resource = ?"), resource).Scan(&highest)
	switch {
	case err != nil:
		return err
	case highest > token:
		return &fence.StaleError{Resource: resource, Token: token, Highest: highest}
	}
	_, err = tx.ExecContext(ctx, e.sql("UPDATE redlock_fence SET token = ? WHERE resource = ?"), token, resource)
	return err
}

// An order is what came of one run.
type order struct {
	accepted, refused, failed int
	falls                     int   // accepted tokens below the one before them
	presented, highest        int64 // of all, and of the accepted ones
	stored                    int64
	took                      time.Duration
}

func (o *order) report(t *testing.T) {
	t.Helper()
	t.Logf("%d accepted, %d refused, %d told to run again, %d falls, in %v", o.accepted, o.refused, o.failed, o.falls, o.took.Round(time.Millisecond))
}

// order presents tokens from many goroutines. They grow on the whole, as the
// tokens of a lock do, but are shuffled among their neighbours, and each comes
// twice. Whoever is accepted writes its token to a log in the same transaction.
// The log numbers its rows as they are inserted; if the guard holds up the
// others from the check to the commit, that is the order of the commits.
func (e *engine) order(t *testing.T, setup string, level sql.IsolationLevel, check check) *order {
	t.Helper()
	const each, window = 16, 16
	db := e.fenced(t, setup)
	mustExec(t, db, "CREATE TABLE accepted (seq "+e.serial+", token BIGINT NOT NULL)")
	inTx(t, db, func(tx *sql.Tx) { verdict(t, e.Check(t.Context(), tx, "r", 1), 0) })

	tokens := make(chan int64, goroutines*each)
	o := &order{}
	for start := 0; start < cap(tokens)/2; start += window {
		for _, n := range append(rand.Perm(window), rand.Perm(window)...) {
			token := int64(start + n + 2)
			o.presented = max(o.presented, token)
			tokens <- token
		}
	}
	close(tokens)

	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for token := range tokens {
				err := e.accept(t.Context(), db, level, check, token)
				again := 0
				for ; e.again(err) && again < 100; again++ { // as whoever wants such a level must
					time.Sleep(rand.N(20 * time.Millisecond))
					err = e.accept(t.Context(), db, level, check, token)
				}
				mu.Lock()
				o.failed += again
				switch {
				case err == nil:
					o.accepted++
				case e.again(err):
				default:
					if stale := staleError(t, err); stale.Highest <= token || stale.Highest > o.presented {
						t.Errorf("token %d: %v", token, err)
					}
					o.refused++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	o.took = time.Since(began)
	o.read(t, db)
	return o
}

// accept checks a token and logs it, in one transaction.
func (e *engine) accept(ctx context.Context, db *sql.DB, level sql.IsolationLevel, check check, token int64) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := check(ctx, tx, "r", token); err != nil {
		return err
	}
	time.Sleep(rand.N(300 * time.Microsecond))
	if _, err := tx.ExecContext(ctx, e.sql("INSERT INTO accepted (token) VALUES (?)"), token); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return tx.Commit()
}

// read takes the verdict from the log.
func (o *order) read(t *testing.T, db *sql.DB) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT token FROM accepted ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	logged, last := 0, int64(0)
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		if token < last {
			o.falls++
		}
		logged, last, o.highest = logged+1, token, max(o.highest, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if logged != o.accepted {
		t.Errorf("%d tokens were accepted, %d logged", o.accepted, logged)
	}
	o.stored = stored(t, db)["r"]
}

// staleError returns err as what it must be.
func staleError(t *testing.T, err error) *fence.StaleError {
	t.Helper()
	stale, ok := errors.AsType[*fence.StaleError](err)
	if !ok {
		t.Errorf("%v, want a StaleError", err)
		return &fence.StaleError{}
	}
	return stale
}
