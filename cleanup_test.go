// A cancelled or failed attempt leaves no lock behind: what the network and the
// servers do to it, on real servers. Cuts and cancellations have files of their
// own.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestCleanupAfterStop stops a server for 2 s under callers that give up soon.
func TestCleanupAfterStop(t *testing.T) {
	t.Parallel()
	const nodeTimeout = 500 * time.Millisecond
	for name, stopped := range map[string][]int{"one": {0}, "all": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			c := f.open(redlock.WithNodeTimeout(nodeTimeout), redlock.WithTTL(20*time.Second))
			f.warm(c)
			for _, i := range stopped {
				f.servers[i].Pause()
			}
			end := time.Now().Add(2 * time.Second)
			var callers sync.WaitGroup
			for i := range 8 {
				m := mutexOf(t, c, fmt.Sprintf("m%d", i))
				callers.Go(func() {
					for time.Now().Before(end) {
						wait := time.Millisecond + rand.N(2*nodeTimeout)
						ctx, cancel := context.WithTimeout(context.Background(), wait)
						l, err := m.TryLock(ctx)
						cancel()
						if err == nil {
							l.Unlock(context.Background())
							time.Sleep(10 * time.Millisecond) // the others are to be stopped, not flooded
						}
					}
				})
			}
			callers.Wait()
			for _, i := range stopped {
				f.servers[i].Resume()
			}
			f.noLocks(2*nodeTimeout + quick)
			time.Sleep(nodeTimeout)
			f.noLocks(0)
			for i := range 8 {
				mustUnlock(t, mustLock(t, mutexOf(t, c, fmt.Sprintf("m%d", i))))
			}
		})
	}
}

// TestCleanupDelayedSet delays each SET of an attempt by the network for longer
// than the attempt and its release take, at every number of nodes.
func TestCleanupDelayedSet(t *testing.T) {
	t.Parallel()
	const nodeTimeout = 150 * time.Millisecond
	for nodes := range 4 {
		t.Run(fmt.Sprintf("nodes=%d", nodes), func(t *testing.T) {
			t.Parallel()
			f := startProxied(t, 3)
			c := f.open(redlock.WithNodeTimeout(nodeTimeout), redlock.WithTTL(20*time.Second))
			f.warm(c)
			var held []*netfault.Hold
			for _, p := range f.proxies[:nodes] {
				held = append(held, p.HoldRequests(netfault.First(1, isAcquire), 0))
			}
			ctx, cancel := context.WithTimeout(t.Context(), nodeTimeout/2)
			defer cancel()
			l, err := mutexOf(t, c, "m").TryLock(ctx)
			switch {
			case nodes <= 1 && err != nil:
				t.Fatal(err)
			case nodes >= 2:
				is(t, err, context.DeadlineExceeded)
			default:
				mustUnlock(t, l)
			}
			time.Sleep(4 * nodeTimeout) // the releases have come and gone
			f.noLocks(0)
			for i, h := range held {
				executed := scripts(t, f.servers[i])
				h.Release()
				if !eventually(quick, func() bool { return scripts(t, f.servers[i]) > executed }) {
					t.Fatalf("node %d: the SET was not executed", i)
				}
			}
			f.noLocks(0)
			mustUnlock(t, mustLock(t, mutexOf(t, c, "m")))
		})
	}
}

// TestCleanupRepeats: a server that refuses connections when the lock is to be
// released, and comes back with the key, is rid of it within two node timeouts.
func TestCleanupRepeats(t *testing.T) {
	t.Parallel()
	const nodeTimeout = time.Second
	outages := map[string]struct{ down, back, up func(*fleet) }{
		"refused": {
			func(f *fleet) { f.proxies[0].Refuse(true) },
			func(*fleet) {},
			func(f *fleet) { f.proxies[0].Refuse(false) },
		},
		"silent": {
			func(f *fleet) { f.proxies[0].Blackhole(true) },
			func(*fleet) {},
			func(f *fleet) { f.proxies[0].Blackhole(false) },
		},
		"killed": {
			func(f *fleet) { f.servers[0].Kill(); f.proxies[0].Refuse(true) },
			func(f *fleet) { f.servers[0].Restart() },
			func(f *fleet) { f.proxies[0].Refuse(false) },
		},
	}
	for name, outage := range outages {
		for _, pause := range []time.Duration{20 * time.Millisecond, 1500 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s/for=%v", name, pause), func(t *testing.T) {
				t.Parallel()
				f := startProxied(t, 3, redisproc.Persist(redisproc.AOFAlways))
				var dropped atomic.Int64
				c := f.open(redlock.WithNodeTimeout(nodeTimeout), redlock.WithTTL(time.Minute),
					redlock.WithTrace(&redlock.Trace{CleanupDropped: func(redlock.CleanupDropped) { dropped.Add(1) }}))
				f.warm(c)
				var leases []*redlock.Lease
				for i := range 20 {
					leases = append(leases, mustLock(t, mutexOf(t, c, fmt.Sprintf("m%d", i))))
				}
				if !eventually(10*time.Second, func() bool { return len(lockKeys(t, f.servers[0])) == 20 }) {
					t.Fatal("the locks are not on node 0")
				}
				outage.down(f)
				for _, l := range leases {
					mustUnlock(t, l)
				}
				time.Sleep(pause)
				outage.back(f)
				if n := len(lockKeys(t, f.servers[0])); n != 20 {
					t.Fatalf("after the outage there are %d keys", n)
				}
				outage.up(f)
				start := time.Now()
				f.noLocks(2*nodeTimeout + 500*time.Millisecond)
				t.Logf("clean after %v", time.Since(start))
				if n := dropped.Load(); n > 0 {
					t.Errorf("%d releases were given up", n)
				}
			})
		}
	}
}

// TestCleanupRepeatsTombstone: the release that has to leave a tombstone is refused
// at first; its repetition leaves it just as well.
func TestCleanupRepeatsTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithNodeTimeout(simNodeTimeout), redlock.WithTTL(time.Minute), redlock.WithoutRenewal())
		slow := s.Node(0)
		slow.Late(10 * simNodeTimeout) // the acquire
		slow.FailWith(errors.New("LOADING"), redlock.Rejected, redlocktest.Release)
		mustUnlock(t, s.lock("m"))
		time.Sleep(3 * simNodeTimeout)
		slow.FailWith(nil, 0)
		time.Sleep(10 * simNodeTimeout)
		synctest.Wait()
		if n := len(slow.Calls()); n < 3 || slow.Calls()[n-1].Op != redlocktest.Acquire {
			t.Fatalf("the acquire was not the last of %d commands", n)
		}
		s.noLocks()
	})
}
