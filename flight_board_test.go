// Who is on board of a flight, and whom others on board keep waiting, in bubbles.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A pier keeps flights from landing until it is open.
type pier struct {
	open chan struct{}

	mu    sync.Mutex
	trips []int // commands on each
}

func (p *pier) trip(commands int) {
	p.mu.Lock()
	p.trips = append(p.trips, commands)
	p.mu.Unlock()
	<-p.open
}

// sizes returns how many commands each flight has had.
func (p *pier) sizes() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.trips)
}

// TestFlightBoarding: a command whose time is over when its flight departs is not on
// board.
func TestFlightBoarding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 1)
		l := s.lock("x", redlock.WithNodeTimeout(5*time.Millisecond)) // less than a flight that is stuck is waited for
		synctest.Wait()
		p := &pier{open: make(chan struct{})}
		s.client.Carry(0, p.trip)
		var group sync.WaitGroup
		for i := range 2 {
			group.Go(func() { mustUnlock(t, s.lock(fmt.Sprint("first", i))) })
			synctest.Wait()
		}
		is(t, l.Extend(t.Context()), redlock.ErrNodeTimeout)
		time.Sleep(20 * time.Millisecond) // a third would have departed
		if n := p.sizes(); !slices.Equal(n, []int{1, 1}) {
			t.Errorf("flights of %v, want two of one", n)
		}
		close(p.open)
		group.Wait()
		mustUnlock(t, l)
	})
}

// TestLaneBoarding: the same of a command that waits for a place, where none travel
// together.
func TestLaneBoarding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 256
		s := simulate(t, 1, redlock.WithoutRenewal(), redlock.WithNodeTimeout(100*time.Millisecond))
		l := s.lock("x")
		n := s.Node(0)
		n.IgnoreContext(true)
		n.Pause()
		var group sync.WaitGroup
		for range places + 50 {
			group.Go(func() { is(t, l.Extend(t.Context()), redlock.ErrNodeTimeout) })
		}
		group.Wait()
		n.Resume()
		synctest.Wait()
		if n := s.executed(redlocktest.Extend); n != places {
			t.Errorf("%d renewals were sent, and %d were wanted when they could be", n, places)
		}
		mustUnlock(t, l)
	})
}

// TestFlightOwes: an acquire that waits for a flight while its node comes to owe more
// releases than it may does not board it.
func TestFlightOwes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 900
		s := simulate(t, 1, redlock.WithoutRenewal(), redlock.WithTTL(time.Hour))
		leases := make([]*redlock.Lease, many)
		for i := range leases {
			leases[i] = s.lock(fmt.Sprint("x", i))
		}
		s.Node(0).FailWith(errors.New("BUSY"), redlock.Rejected, redlocktest.Release)
		var group sync.WaitGroup
		group.Go(func() { _ = leases[0].Unlock(context.Background()) })
		synctest.Wait() // that one is going to be repeated
		p := &pier{open: make(chan struct{})}
		s.client.Carry(0, p.trip)
		try := func(name string) {
			group.Go(func() {
				if l, err := s.mutex(name).TryLock(context.Background()); err == nil {
					_ = l.Unlock(context.Background())
				}
			})
			synctest.Wait()
		}
		try("first")
		try("second")
		try("third")
		if n := p.sizes(); len(n) != 2 {
			t.Fatalf("flights of %v, and the third was to wait", n)
		}
		for _, l := range leases[1:] {
			group.Go(func() { _ = l.Unlock(context.Background()) })
		}
		synctest.Wait()
		close(p.open)
		synctest.Wait()
		acquired := make(map[string]bool)
		for _, c := range s.Node(0).Calls() {
			if c.Op == redlocktest.Acquire {
				acquired[c.Key] = true
			}
		}
		if !acquired["lock:first"] || !acquired["lock:second"] || acquired["lock:third"] {
			t.Errorf("acquired: %v", acquired)
		}
		s.heal()
		group.Wait()
		time.Sleep(2 * time.Second)
		s.noLocks()
	})
}

// A doubtful node does not tell about its server until it is open, and has a new
// connection for everybody who asks.
type doubtful struct {
	*redlocktest.Node
	open        chan struct{}
	connections atomic.Uint64
}

func (d *doubtful) Connections() uint64 { return d.connections.Add(1) }

func (d *doubtful) Probe(ctx context.Context) ([]redlock.ServerInfo, error) {
	select {
	case <-d.open:
		return d.Node.Probe(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestFlightGuard: flights do not wait for what a node has to tell before an acquire on
// board counts.
func TestFlightGuard(t *testing.T) {
	for name, o := range map[string]redlock.Option{
		"crash guard": redlock.WithCrashGuard(time.Minute),
		"strict":      redlock.WithStrictNodes(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 1)
				d := &doubtful{Node: s.Node(0), open: make(chan struct{})}
				c := openClient(t, []redlock.Node{d}, o)
				p := &pier{open: make(chan struct{})}
				close(p.open)
				c.Carry(0, p.trip)
				close(d.open)
				l := mustLock(t, mutexOf(t, c, "held"))
				d.open = make(chan struct{})
				var group sync.WaitGroup
				for i := range 2 { // as many as are under way before others wait
					m := mutexOf(t, c, fmt.Sprint("x", i))
					group.Go(func() {
						if l, err := m.TryLock(context.Background()); err == nil {
							mustUnlock(t, l)
						}
					})
				}
				synctest.Wait()
				exactly(t, "Unlock", took(func() { mustUnlock(t, l) }), 0)
				close(d.open)
				group.Wait()
				noErr(t, c.Close())
			})
		})
	}
}

// TestFlightSilent: a node that has let the time of a flight pass is not waited for when
// a vote is split, although the flight was not needed.
func TestFlightSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		s.client.Carry(2, func(int) {})
		s.Node(2).Blackhole(true)
		l := s.lock("x")
		time.Sleep(2 * time.Second)
		occupy("y", time.Minute, s.Node(0))
		exactly(t, "TryLock", took(func() {
			_, err := s.mutex("y").TryLock(t.Context())
			is(t, err, redlock.ErrNoQuorum)
		}), 0)
		s.heal()
		mustUnlock(t, l)
		drop("y", s.Node(0))
		time.Sleep(20 * time.Second)
	})
}
