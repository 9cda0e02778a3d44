// Everything at once: renewals, Extend, Unlock, Close and those who watch the
// lease.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A witness is a node that remembers which tokens it was told to release. After
// that it must be told nothing else about them.
type witness struct {
	redlock.Node
	released sync.Map // by value
	extends  atomic.Int64
	late     atomic.Int64
	what     atomic.Value
}

func (w *witness) see(op string, c *redlock.Claim) {
	if _, ok := w.released.Load(c.Value); ok {
		w.late.Add(1)
		w.what.Store(fmt.Sprintf("%s of %s %s", op, c.Lock, c.Value))
	}
}

func (w *witness) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	w.see("acquire", c)
	return w.Node.Acquire(ctx, c)
}

func (w *witness) Extend(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	w.extends.Add(1)
	w.see("extend", c)
	return w.Node.Extend(ctx, c)
}

func (w *witness) Release(ctx context.Context, c *redlock.Claim, bury bool) (redlock.Reply, error) {
	w.released.Store(c.Value, true)
	return w.Node.Release(ctx, c, bury)
}

// witnessed makes nodes of which each has a witness.
func witnessed(n int) (*redlocktest.Cluster, []*witness, []redlock.Node) {
	c := redlocktest.New(n)
	witnesses, nodes := make([]*witness, n), make([]redlock.Node, n)
	for i := range nodes {
		witnesses[i] = &witness{Node: c.Node(i)}
		nodes[i] = witnesses[i]
	}
	return c, witnesses, nodes
}

func checkWitnesses(t *testing.T, c *redlocktest.Cluster, witnesses []*witness) {
	t.Helper()
	for i, w := range witnesses {
		if n := w.late.Load(); n > 0 {
			t.Errorf("node %d was sent %d commands for tokens after their release, as %v", i, n, w.what.Load())
		}
		for _, key := range c.Node(i).Keys() {
			if !strings.HasPrefix(key, "redlock:") {
				t.Errorf("node %d still has %q", i, key)
			}
		}
	}
}

// iterations returns how often to do what is quick.
func iterations(n int) int {
	if testing.Short() {
		return n / 20
	}
	return n
}

// TestRenewRace: leases that are renewed every millisecond, extended, watched and
// unlocked, all at the same time.
func TestRenewRace(t *testing.T) {
	const workers = 16
	c, witnesses, nodes := witnessed(3)
	var renewals atomic.Int64
	client, err := redlock.New(nodes,
		redlock.WithRenewal(time.Millisecond),
		redlock.WithTrace(&redlock.Trace{
			Renewal: func(redlock.Renewal) { renewals.Add(1) },
			Lost:    func(e redlock.Lost) { t.Errorf("lost: %v", e.Err) },
		}))
	noErr(t, err)

	var workersDone sync.WaitGroup
	for worker := range workers {
		m := mutexOf(t, client, fmt.Sprint(worker))
		workersDone.Go(func() {
			for range iterations(98_000) / workers {
				if err := raceOnce(m); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workersDone.Wait()
	noErr(t, client.Close())
	checkWitnesses(t, c, witnesses)
	t.Logf("%d renewals, %d extends at node 0", renewals.Load(), witnesses[0].extends.Load())
	if renewals.Load() < int64(iterations(98_000)/100) {
		t.Error("hardly anything was renewed, so nothing raced")
	}
}

func raceOnce(m *redlock.Mutex) error {
	bg := context.Background()
	l, err := m.Lock(bg)
	if err != nil {
		return err
	}
	if rand.N(4) == 0 {
		time.Sleep(rand.N(2 * time.Millisecond))
	}
	var wg sync.WaitGroup
	var extendErr, unlockErr, watchErr error
	var unlocked atomic.Bool // Unlock was called
	wg.Go(func() {
		if err := l.Extend(bg); err != nil && !unlocked.Load() {
			extendErr = err
		}
	})
	wg.Go(func() {
		for {
			err := l.Err()
			ctxErr := l.Context().Err()
			switch {
			case err == nil:
				time.Sleep(50 * time.Microsecond)
				continue
			case !errors.Is(err, redlock.ErrUnlocked) || errors.Is(err, redlock.ErrLost):
				watchErr = fmt.Errorf("the lease ended otherwise than by Unlock: %w", err)
			case ctxErr == nil:
				watchErr = errors.New("Err says that the lease has ended, and then its context does not")
			case l.Remaining() != 0:
				watchErr = errors.New("something remains of an ended lease")
			}
			return
		}
	})
	unlocked.Store(true)
	unlockErr = l.Unlock(bg)
	wg.Wait()
	<-l.Done()
	if err := l.Unlock(bg); !errors.Is(err, redlock.ErrNotHeld) {
		return fmt.Errorf("a second Unlock: %w", err)
	}
	if err := l.Extend(bg); !errors.Is(err, redlock.ErrNotHeld) {
		return fmt.Errorf("Extend after Unlock: %w", err)
	}
	return errors.Join(extendErr, unlockErr, watchErr)
}

// TestRenewRaceClose: as before, but the client closes meanwhile. Whoever comes
// first, no key is left.
func TestRenewRaceClose(t *testing.T) {
	bg := context.Background()
	for range iterations(2000) {
		c, witnesses, nodes := witnessed(3)
		client, err := redlock.New(nodes, redlock.WithRenewal(time.Millisecond))
		noErr(t, err)
		var leases []*redlock.Lease
		for i := range 4 {
			l, err := mutexOf(t, client, fmt.Sprint(i)).Lock(bg)
			noErr(t, err)
			leases = append(leases, l)
		}
		time.Sleep(rand.N(2 * time.Millisecond))
		var wg sync.WaitGroup
		wg.Go(func() { noErr(t, client.Close()) })
		for i, l := range leases {
			wg.Go(func() { l.Extend(bg) })
			wg.Go(func() { <-l.Done() })
			if i%2 == 0 {
				wg.Go(func() { l.Unlock(bg) })
			}
		}
		wg.Wait()
		for _, l := range leases {
			if err := l.Err(); errors.Is(err, redlock.ErrLost) || !errors.Is(err, redlock.ErrUnlocked) && !errors.Is(err, redlock.ErrClosed) {
				t.Errorf("ended with %v", err)
			}
		}
		if checkWitnesses(t, c, witnesses); t.Failed() {
			return
		}
	}
}

// TestRenewRaceLoss: many find out about one loss. It is signalled once.
func TestRenewRaceLoss(t *testing.T) {
	bg := context.Background()
	c, witnesses, nodes := witnessed(3)
	var mu sync.Mutex
	losses := map[string]int{}
	client, err := redlock.New(nodes, redlock.WithRenewal(time.Millisecond), redlock.WithTrace(&redlock.Trace{
		Lost: func(e redlock.Lost) {
			mu.Lock()
			defer mu.Unlock()
			losses[e.Name]++
		},
	}))
	noErr(t, err)
	var workersDone sync.WaitGroup
	for worker := range 8 {
		workersDone.Go(func() {
			for i := range iterations(8000) / 8 {
				name := fmt.Sprintf("%d/%d", worker, i)
				l, err := mutexOf(t, client, name).Lock(bg)
				if err != nil {
					t.Error(err)
					return
				}
				all := []*redlocktest.Node{c.Node(0), c.Node(1), c.Node(2)}
				occupy(name, 0, all...)
				var wg sync.WaitGroup
				wg.Go(func() { l.Extend(bg) })
				wg.Go(func() { l.Extend(bg) })
				wg.Go(func() { <-l.Done() })
				wg.Go(func() {
					for l.Context().Err() == nil {
						time.Sleep(50 * time.Microsecond)
					}
				})
				unlocks := i%2 == 0
				if unlocks {
					wg.Go(func() { l.Unlock(bg) })
				}
				wg.Wait()
				switch err := l.Err(); {
				case unlocks && errors.Is(err, redlock.ErrUnlocked) && !errors.Is(err, redlock.ErrLost):
				case !errors.Is(err, redlock.ErrLost) || !errors.Is(err, redlock.ErrTaken) && !errors.Is(err, redlock.ErrNotHeld):
					t.Errorf("ended with %v", err)
					return
				default:
					mu.Lock()
					losses[name] += 1000 // one is expected
					mu.Unlock()
				}
				drop(name, all...)
			}
		})
	}
	workersDone.Wait()
	noErr(t, client.Close())
	for name, n := range losses {
		if n != 1001 {
			t.Errorf("%s: the loss was signalled %d times (modulo 1000), or for a lease that was not lost", name, n)
		}
	}
	checkWitnesses(t, c, witnesses)
}
