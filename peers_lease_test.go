// What was measured to go wrong with other lock libraries once a lock is held,
// as peers_test.go.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/script"
)

// M16: Unlock reported failure although at most one node could still hold the
// key: one had lost it, one was silent, one had deleted it.
func TestPeersM16(t *testing.T) {
	t.Parallel()
	f := startProxied(t, 3)
	defer f.hangUp()
	c := f.open(redlock.WithTTL(8*time.Second), redlock.WithNodeTimeout(500*time.Millisecond), redlock.WithoutRenewal())
	f.warm(c)
	m := mutexOf(t, c, "m")
	l := mustLock(t, m)
	f.settled(3)
	f.servers[0].RestartEmpty()
	f.proxies[1].Blackhole(true)
	onTime(t, "Unlock", func() error { return l.Unlock(t.Context()) })
	onTime(t, "TryLock by another client", func() error {
		other, err := f.mutex("m").TryLock(t.Context())
		if err == nil {
			defer mustUnlock(t, other)
		}
		return err
	})
}

// M17, M18: an Extend after the expiry said that the lock was taken, and with
// SetNXOnExtend even succeeded after somebody else had come and gone.
func TestPeersM18(t *testing.T) {
	t.Parallel()
	f := startProxied(t, 3)
	a := f.mutex("m", redlock.WithTTL(100*time.Millisecond), redlock.WithoutRenewal())
	l := mustLock(t, a)
	<-l.Done()
	mustUnlock(t, mustLock(t, f.mutex("m")))
	var sent atomic.Int64
	for _, p := range f.proxies {
		p.Tap(func(_ int, dir netfault.Direction, b []byte) {
			if dir == netfault.ToServer && runs(b, &script.Extend) {
				sent.Add(1)
			}
		})
	}
	err := l.Extend(t.Context())
	is(t, err, redlock.ErrNotHeld, redlock.ErrLost, redlock.ErrExpired)
	isNot(t, err, redlock.ErrTaken)
	f.noLocks(quick)
	if n := sent.Load(); n != 0 {
		t.Errorf("Extend of a lease that has ended sent %d commands", n)
	}
}

// M19: a Mutex shared by two goroutines: the first one's late Unlock deleted the
// lock of the second.
func TestPeersM19(t *testing.T) {
	t.Parallel()
	f := startProxied(t, 3)
	m := f.mutex("m", redlock.WithTTL(300*time.Millisecond), redlock.WithoutRenewal())
	late := mustLock(t, m)
	f.settled(3)
	<-late.Done()
	f.noLocks(quick)
	next := mustLock(t, mutexOf(t, f.open(), "m"))
	f.settled(3)
	if late.Token() == next.Token() {
		t.Error("two leases have one token")
	}
	for range 2 {
		is(t, late.Unlock(t.Context()), redlock.ErrNotHeld)
	}
	time.Sleep(50 * time.Millisecond)
	if n := f.holding(next); n != 3 {
		t.Errorf("after the first one's Unlock %d nodes hold the second one's lock", n)
	}
	noErr(t, next.Extend(t.Context()))

	// The same with attempts of one mutex, of which the first is still being
	// released when the second one has won.
	mustUnlock(t, next)
	f.noLocks(quick)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, p := range f.proxies {
		p.Delay(0, 40*time.Millisecond)
	}
	if l, err := m.TryLock(ctx); err == nil {
		t.Errorf("TryLock: %v although its context had ended", l)
	}
	for _, p := range f.proxies {
		p.Delay(0, 0)
	}
	next = mustLock(t, mutexOf(t, f.open(), "m"))
	before := f.holding(next)
	time.Sleep(100 * time.Millisecond)
	if n := f.holding(next); n < before || n < 2 {
		t.Errorf("%d nodes held the lock, and now %d do", before, n)
	}
	mustUnlock(t, next)
}

// holding returns how many servers hold the lease's token.
func (f *fleet) holding(l *redlock.Lease) int {
	f.t.Helper()
	n := 0
	for i, s := range f.servers {
		if ask(f.t, s, "GET", "lock:"+l.Name()) == fmt.Sprintf("%s.%d", l.Token(), i) {
			n++
		}
	}
	return n
}

// M20: Extend in one goroutine raced with the deadline read in another.
func TestPeersM20(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	l := mustLock(t, f.mutex("m", redlock.WithTTL(20*time.Second)))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			last := l.Deadline()
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch now := l.Deadline(); {
				case now.Before(last):
					t.Errorf("the deadline went back from %v to %v", last, now)
					return
				case l.Remaining() > 20*time.Second, l.Err() != nil, l.Context().Err() != nil:
					t.Errorf("remaining %v, %v", l.Remaining(), l.Err())
					return
				default:
					last = now
				}
			}
		})
	}
	var extenders sync.WaitGroup
	for range 4 {
		extenders.Go(func() {
			for range 50 {
				if err := l.Extend(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	extenders.Wait()
	close(stop)
	readers.Wait()
	mustUnlock(t, l)
	if l.Remaining() != 0 || l.Deadline().IsZero() {
		t.Errorf("after Unlock: remaining %v, deadline %v", l.Remaining(), l.Deadline())
	}
}

// M22: no attempts, no nodes, a context cancelled before and one that ended while
// waiting all gave one and the same error.
func TestPeersM22(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	c := f.open()
	if _, err := redlock.New(nil); err == nil {
		t.Error("New without nodes succeeds")
	}
	if _, err := c.NewMutex("m", redlock.WithMaxAttempts(0)); err == nil {
		t.Error("WithMaxAttempts(0) is accepted")
	}
	m := mutexOf(t, c, "m", redlock.WithMaxAttempts(2))

	before := scripts(t, f.servers[0])
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.Lock(cancelled)
	is(t, err, context.Canceled)
	isNot(t, err, redlock.ErrTaken, redlock.ErrNoQuorum)
	if n := scripts(t, f.servers[0]) - before; n != 0 {
		t.Errorf("a cancelled Lock sent %d commands", n)
	}

	l := mustLock(t, m)
	_, err = m.Lock(t.Context())
	is(t, err, redlock.ErrTaken)
	isNot(t, err, context.Canceled, context.DeadlineExceeded, redlock.ErrNoQuorum)
	if e, ok := errors.AsType[*redlock.QuorumError](err); !ok || e.Denied < 2 {
		t.Errorf("%v is no *QuorumError with two refusals", err)
	}

	waiting, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	patient := redlock.WithBackoff(func(int, float64) time.Duration { return time.Hour })
	_, err = mutexOf(t, c, "m", patient).Lock(waiting)
	is(t, err, context.DeadlineExceeded, redlock.ErrTaken)

	mustUnlock(t, l)
	is(t, l.Unlock(t.Context()), redlock.ErrNotHeld, redlock.ErrUnlocked)

	f.servers[0].Kill()
	f.servers[1].Kill()
	_, err = m.TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum)
	isNot(t, err, redlock.ErrTaken, context.Canceled, context.DeadlineExceeded)
	if err := c.Close(); err != nil {
		t.Log(err) // two servers are gone
	}
	_, err = m.TryLock(t.Context())
	is(t, err, redlock.ErrClosed)
	isNot(t, err, redlock.ErrNoQuorum, redlock.ErrTaken)
}
