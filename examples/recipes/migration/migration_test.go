// Each step once, however many instances start, and none by a holder of the past.

package main

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/redlocktest"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

// TestMigrationOnce starts eight instances at once.
func TestMigrationOnce(t *testing.T) {
	t.Setenv(nodes.Env, "")
	set, err := nodes.Open(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	file := filepath.Join(t.TempDir(), "app.db")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if cents, err := start(t.Context(), set, file); err != nil || cents != 100*100 {
				t.Errorf("%d cents, error %v", cents, err)
			}
		})
	}
	wg.Wait()
}

// TestMigrationStale: an instance that was paused after it was granted the lock, until
// its keys were gone and another had done the work, is refused and changes nothing.
func TestMigrationStale(t *testing.T) {
	cluster := redlocktest.New(5)
	db, err := open(t.Context(), filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var leases []*redlock.Lease
	for range 2 {
		client, err := redlock.New(cluster.Nodes(), redlock.WithoutRenewal())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		mutex, err := client.NewMutex("migrations")
		if err != nil {
			t.Fatal(err)
		}
		l, err := mutex.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
		for i := range cluster.Len() { // time passes for the nodes, and not for the holder
			cluster.Node(i).Del("lock:migrations")
		}
	}
	paused, next := leases[0], leases[1]
	if _, err := apply(t.Context(), db, paused, steps); err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		if done, err = apply(t.Context(), db, next, steps); err != nil {
			t.Fatal(err)
		}
	}
	more := append(slices.Clip(steps), steps[len(steps)-1])
	if _, err := apply(t.Context(), db, paused, more); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the paused instance: %v", err)
	}
	if _, err := apply(t.Context(), db, next, more); err != nil {
		t.Error(err)
	}
	var cents int
	if err := db.QueryRowContext(t.Context(), `SELECT cents FROM accounts`).Scan(&cents); err != nil || cents != 100*100*100 {
		t.Errorf("%d cents, error %v", cents, err)
	}
}
