// Hooks that do odd things, and calls that meet.

package redlock_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestUnlockDuringClose: an Unlock that ends a lease which Close then releases must not say that the lock was
// lost: the keys were there, and went by Close's own release.
func TestUnlockDuringClose(t *testing.T) {
	bad := 0
	const runs = 200
	for range runs {
		var onStop func()
		s := simulate(t, 3, redlock.WithClock(stoppable{clock.System, &onStop}), redlock.WithoutRenewal())
		other := s.mutex("y")
		l := s.lock("x")
		closed := make(chan error, 1)
		onStop = func() {
			go func() { closed <- s.client.Close() }()
			for range 10_000_000 { // until the client is closing
				if _, err := other.TryLock(t.Context()); errors.Is(err, redlock.ErrClosed) {
					return
				}
			}
		}
		err := l.Unlock(t.Context())
		noErr(t, <-closed)
		if st := s.client.Stats(); st.LeaseUnlocked != 1 {
			t.Fatalf("%+v", st)
		}
		if err != nil {
			if bad++; bad == 1 {
				t.Log(err)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d failed though the lock was held until then", bad, runs)
	}
}

// TestRenewalDuringUnlock: a renewal under way when its lease is unlocked has not failed.
func TestRenewalDuringUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		s := distant(t, 3, redlock.WithTTL(3*time.Second), redlock.WithTrace(r.trace()))
		for _, n := range s.all() {
			n.Delay(25*time.Millisecond, 25*time.Millisecond)
		}
		l := mustLock(t, s.mutex("x"))
		for range 100000 {
			time.Sleep(time.Millisecond)
			if s.executed(redlocktest.Extend) > 0 {
				break
			}
		}
		noErr(t, l.Unlock(t.Context()))
		time.Sleep(time.Second)
		n := s.client.Stats()
		for _, e := range of[redlock.Renewal](&r) {
			t.Logf("Renewal: %v", e.Err)
		}
		if n.RenewalFailed != 0 {
			t.Errorf("%d of %d renewals failed, and all nodes were well", n.RenewalFailed, n.Renewals)
		}
	})
}

type mapContext struct {
	context.Context
	values map[string]string
}

// TestTraceContextUncomparable: a context may be of any type, also of one that cannot be compared.
func TestTraceContextUncomparable(t *testing.T) {
	trace := &redlock.Trace{LockStart: func(ctx context.Context, _ redlock.LockStart) context.Context { return ctx }}
	s := simulate(t, 3, redlock.WithTrace(trace))
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v", p)
		}
	}()
	l, err := s.mutex("x").Lock(mapContext{t.Context(), map[string]string{}})
	noErr(t, err)
	noErr(t, l.Unlock(t.Context()))
}

// TestUnlockedAfterClose: Unlocked is called with the outcome of the first Unlock of a lease, also if that was lost.
func TestUnlockedAfterClose(t *testing.T) {
	var r recorder
	s := simulate(t, 3, redlock.WithTrace(r.trace()))
	l := s.lock("x")
	noErr(t, s.client.Close())
	is(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
	if n := len(of[redlock.Unlocked](&r)); n != 1 {
		t.Errorf("%d events of Unlocked", n)
	}
}

// TestHooksCallBack: whatever hooks do with the client, nobody waits for ever, and the numbers add up.
func TestHooksCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *sim
		var leases sync.Map
		trace := everyHook(func(h string, e any) {
			if n := reflect.ValueOf(e).FieldByName("Name"); n.IsValid() && strings.HasPrefix(n.String(), "other-") {
				return
			}
			_ = s.client.Stats()
			_, _ = s.client.Inspect(context.Background(), "x")
			if h == "Lost" || h == "Unlocked" {
				_, _ = s.client.Check(context.Background())
			}
			if l, err := s.mutex("other-" + h).TryLock(context.Background()); err == nil {
				_ = l.Extend(context.Background())
				_ = l.Unlock(context.Background())
			}
			switch h {
			case "Lost", "Danger", "Unlocked", "Renewal":
				leases.Range(func(_, l any) bool { _ = l.(*redlock.Lease).Unlock(context.Background()); return true })
			}
		})
		s = simulate(t, 5, redlock.WithTTL(time.Second), redlock.WithTrace(trace))
		for i := range 6 {
			if i%5 == 1 {
				for _, n := range s.first(3) {
					n.Refuse(true)
				}
				time.AfterFunc(3*time.Second, s.heal)
			}
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
					defer cancel()
					l, err := s.mutex("x").Lock(ctx)
					if err != nil {
						return
					}
					leases.Store(l, l)
					time.Sleep(500 * time.Millisecond)
					_ = l.Unlock(ctx)
					leases.Delete(l)
				})
			}
			wg.Wait()
		}
		s.heal()
		time.Sleep(10 * time.Second)
		n := s.client.Stats()
		lost := int64(0)
		for _, c := range n.LeaseLost {
			lost += c
		}
		t.Logf("acquired %d held %d unlocked %d lost %v waiting %d attempts %d failed %v", n.LeaseAcquired, n.LeasesHeld, n.LeaseUnlocked, n.LeaseLost, n.Waiting, n.Attempts, n.AttemptFailed)
		if n.LeaseAcquired != n.LeasesHeld+n.LeaseUnlocked+lost || n.Waiting != 0 {
			t.Errorf("%+v", n)
		}
		failed := int64(0)
		for _, c := range n.AttemptFailed {
			failed += c
		}
		if n.Attempts != n.LeaseAcquired+failed {
			t.Errorf("%d attempts, %d acquired, %d failed", n.Attempts, n.LeaseAcquired, failed)
		}
	})
}
