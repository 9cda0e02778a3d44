// A job of ten TTLs on real servers, two of which die in turn and come back
// empty.

package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

func TestRenewRestart(t *testing.T) {
	const ttl = 1500 * time.Millisecond
	f := startFleet(t, 5)
	var book logbook
	client := f.open(redlock.WithTTL(ttl), redlock.WithNodeTimeout(200*time.Millisecond), book.trace())
	warm(t, client)
	lease := mustLock(t, mutexOf(t, client, "a"))
	start := time.Now()
	var slowest time.Duration
	restarts := 0
	for time.Since(start) < 10*ttl {
		i := restarts % 2
		restarts++
		f.servers[i].Kill()
		time.Sleep(time.Duration(restarts%5) * ttl / 10)
		f.servers[i].RestartEmpty()
		back := time.Now()
		want := fmt.Sprintf("%s.%d", lease.Token(), i)
		if !eventually(5*time.Second, func() bool {
			value, err := f.servers[i].Do("GET", "lock:a")
			return err == nil && value == want
		}) {
			t.Fatalf("node %d has not got the key back: %v", i, lease.Err())
		}
		slowest = max(slowest, time.Since(back))
	}
	noErr(t, lease.Err())
	noErr(t, lease.Context().Err())
	book.lost(t, 0)
	if n := book.failed(); n > 0 {
		t.Errorf("%d renewals failed", n)
	}
	t.Logf("%d restarts; the slowest got its key back after %v", restarts, slowest)
	// A renewal, and what a loaded machine needs for it and for connecting.
	if bound := ttl/3 + 500*time.Millisecond; slowest > bound {
		t.Errorf("a node got its key back only after %v, want %v", slowest, bound)
	}
	mustUnlock(t, lease)
	f.noLocks(5 * time.Second)
}
