// Whom a check waits for, and for how long.

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock/fence"
)

// testOtherResources keeps many transactions open that have each checked a
// resource of their own. None may wait for another, whether its row is new or not.
func (e *engine) testOtherResources(t *testing.T) {
	if e.Dialect == fence.SQLite {
		t.Skip("SQLite has one writer at a time")
	}
	for _, level := range e.levels {
		t.Run(level.String(), func(t *testing.T) {
			db := e.fenced(t, "default")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, rows := range []string{"new", "stored"} {
				txs := make([]*sql.Tx, goroutines)
				for i := range txs {
					txs[i] = begin(t, db, level)
					if err := e.Check(ctx, txs[i], fmt.Sprint("r", i), 1); err != nil {
						t.Fatalf("%s rows: %v", rows, err)
					}
				}
				for _, tx := range txs {
					if err := tx.Commit(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// testCanceled ends the context of a check that waits.
func (e *engine) testCanceled(t *testing.T) {
	db := e.fenced(t, "default")
	first := begin(t, db, sql.LevelDefault)
	verdict(t, e.Check(t.Context(), first, "r", 1), 0)

	second := begin(t, db, sql.LevelDefault)
	lost := errors.New("lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(lost) })
	ended := make(chan error, 1)
	go func() { ended <- e.Check(ctx, second, "r", 2) }()
	select {
	case err := <-ended:
		if err == nil || errors.Is(err, fence.ErrStale) || !errors.Is(err, lost) {
			t.Errorf("%v, want an error with the context's cause", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the check outlived its context")
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, db)["r"]; got != 1 {
		t.Errorf("stored: %d, want 1", got)
	}
}
