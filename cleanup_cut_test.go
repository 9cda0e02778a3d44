// A cancelled or failed attempt leaves no lock behind: the connection breaks at
// every byte of what is sent and of what is answered.

package redlock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
)

// TestCleanupCut locks and unlocks, with the connection cut after the n-th byte
// from the start, for each n of either direction: that is each byte of the
// acquire, and then each of the release. The connection of one of three nodes is
// cut, or those of all.
func TestCleanupCut(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{1, 3} {
		for dir, arm := range map[netfault.Direction]func(p *netfault.Proxy, n int){
			netfault.ToServer: (*netfault.Proxy).CutAfter,
			netfault.ToClient: (*netfault.Proxy).CutReplyAfter,
		} {
			t.Run(fmt.Sprintf("nodes=%d/%v", cut, dir), func(t *testing.T) {
				t.Parallel()
				cutEverywhere(t, cut, dir, arm)
			})
		}
	}
}

func cutEverywhere(t *testing.T, cut int, dir netfault.Direction, arm func(*netfault.Proxy, int)) {
	t.Helper()
	const nodeTimeout = time.Second
	f := startProxied(t, 3)
	c := f.open(redlock.WithNodeTimeout(nodeTimeout), redlock.WithTTL(time.Minute), redlock.WithoutRenewal())
	f.warm(c)
	m := mutexOf(t, c, "m")
	victims := f.proxies[:cut]

	// What one cycle sends and is answered, and the acquire's part of it.
	var bytes, acquire [2]atomic.Int64
	acquired := make(chan struct{})
	f.proxies[0].Tap(func(_ int, d netfault.Direction, b []byte) {
		bytes[d].Add(int64(len(b)))
		select {
		case <-acquired:
		default:
			acquire[d].Add(int64(len(b)))
		}
	})
	l := mustLock(t, m)
	f.settled(3)
	time.Sleep(10 * time.Millisecond) // for the answers
	close(acquired)
	mustUnlock(t, l)
	f.noLocks(quick)
	f.proxies[0].Tap(nil)
	total, first := int(bytes[dir].Load()), int(acquire[dir].Load())
	if first == 0 || total <= first {
		t.Fatalf("%v: %d bytes, %d of them for the acquire", dir, total, first)
	}

	step := 1
	if testing.Short() && total > 50 {
		step = 17
	}
	lost := 0
	for n := 0; n < total; n += step {
		mustUnlock(t, mustLock(t, m)) // so that all have a connection
		f.noLocks(2 * nodeTimeout)
		for _, p := range victims {
			arm(p, n)
		}
		l, err := m.TryLock(t.Context())
		switch {
		case err == nil:
			err := l.Unlock(t.Context())
			if err != nil && cut == 1 {
				t.Errorf("cut at %d of %d: Unlock: %v", n, total, err)
			}
		case cut == 1:
			t.Errorf("cut at %d of %d: TryLock: %v", n, total, err)
		default:
			lost++
			is(t, err, redlock.ErrNoQuorum)
			isNot(t, err, redlock.ErrTaken)
		}
		f.noLocks(2 * nodeTimeout)
		for _, p := range victims {
			arm(p, -1)
		}
		if t.Failed() {
			return
		}
	}
	if cut > 1 && lost == 0 {
		t.Error("no attempt was lost: nothing was cut")
	}
}
