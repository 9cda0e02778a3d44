// Stats: each figure is moved by what it stands for.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestStatsLost: each way for a lease to end is counted and told, with what went before.
func TestStatsLost(t *testing.T) {
	const ttl = time.Second
	for cause, c := range map[redlock.LossCause]struct {
		opts []redlock.Option
		end  func(s *sim, l *redlock.Lease)
		held time.Duration
	}{
		redlock.LossExpired: {[]redlock.Option{redlock.WithoutRenewal()}, func(*sim, *redlock.Lease) {}, 988 * time.Millisecond},
		redlock.LossNoQuorum: {nil, func(s *sim, _ *redlock.Lease) {
			for _, n := range s.first(3) {
				n.Refuse(true)
			}
		}, 988 * time.Millisecond},
		redlock.LossTaken: {nil, func(s *sim, _ *redlock.Lease) {
			drop("x", s.all()...)
			occupy("x", time.Hour, s.all()...)
		}, ttl / 3},
		redlock.LossNotHeld: {nil, func(s *sim, _ *redlock.Lease) { drop("x", s.first(3)...) }, ttl / 3},
		redlock.LossMaxHold: {[]redlock.Option{redlock.WithMaxHold(2 * ttl)}, func(*sim, *redlock.Lease) {}, 2 * ttl},
		redlock.LossClosed:  {nil, func(s *sim, _ *redlock.Lease) { noErr(s.t, s.client.Close()) }, 0},
	} {
		t.Run(string(cause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r recorder
				s := simulate(t, 5, append(c.opts, redlock.WithTTL(ttl), redlock.WithTrace(r.trace()))...)
				l := s.lock("x")
				if n := s.client.Stats(); n.LeasesHeld != 1 || n.LeaseAcquired != 1 {
					t.Errorf("%d held, %d acquired", n.LeasesHeld, n.LeaseAcquired)
				}
				synctest.Wait()
				c.end(s, l)
				time.Sleep(3 * ttl)
				n := s.client.Stats()
				for k, count := range n.LeaseLost {
					if want := map[bool]int64{true: 1}[k == cause]; count != want {
						t.Errorf("%s: %d, want %d", k, count, want)
					}
				}
				if len(n.LeaseLost) != 6 || n.LeasesHeld != 0 || n.LeaseAcquired != 1 || n.LeaseUnlocked != 0 || n.HoldTime.Count != 1 {
					t.Errorf("%+v", n)
				}
				e := one[redlock.Lost](t, &r)
				if e.Cause != cause || e.Name != "x" || !errors.Is(e.Err, l.Err()) || e.Context.Value(callKey{}) != "x" {
					t.Errorf("%+v", e)
				}
				if e.Held > c.held || e.Held < c.held*9/10-time.Millisecond || n.HoldTime.Max != e.Held {
					t.Errorf("held for %v, counted %v, want %v or a little less", e.Held, n.HoldTime.Max, c.held)
				}
				is(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
				if cause == redlock.LossClosed {
					return // nothing is sent any more
				}
				u := one[redlock.Unlocked](t, &r)
				if u.Held != e.Held || u.Context.Value(callKey{}) != "x" {
					t.Errorf("%+v", u)
				}
				is(t, u.Err, redlock.ErrNotHeld, redlock.ErrLost)
				if n := s.client.Stats(); n.LeaseUnlocked != 0 || n.UnlockLatency.Count != 0 {
					t.Errorf("a lost lease counts as unlocked: %+v", n)
				}
				s.heal()
				time.Sleep(5 * ttl)
			})
		})
	}
}

// TestStatsTimes: how long things take is measured, and told.
func TestStatsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 20 * time.Millisecond
		var r recorder
		s := distant(t, 3, redlock.WithTTL(3*time.Second), redlock.WithTrace(r.trace()))
		for _, n := range s.all() {
			n.Delay(trip/2, trip/2)
		}
		m := s.mutex("x")
		for range 10 {
			l := mustLock(t, m)
			time.Sleep(4 * time.Second)
			noErr(t, l.Unlock(t.Context()))
		}
		synctest.Wait()
		n := s.client.Stats()
		about := func(what string, l redlock.Latency, count int64, want time.Duration) {
			t.Helper()
			for _, d := range []time.Duration{l.Mean, l.P50, l.P90, l.P99, l.Max} {
				if off := math.Abs(float64(d)/float64(want) - 1); l.Count != count || off > 0.0626 {
					t.Errorf("%s: %+v, want %d of %v", what, l, count, want)
					return
				}
			}
		}
		about("acquire", n.AcquireLatency, 10, trip)
		about("wait", n.WaitTime, 10, trip)
		about("unlock", n.UnlockLatency, 10, trip)
		about("hold", n.HoldTime, 10, 4*time.Second)
		about("heartbeat", n.HeartbeatLatency, n.Renewals, trip)
		for _, node := range n.Nodes {
			about(node.Name, node.Latency, 20+n.Renewals, trip)
			if node.Calls != node.Latency.Count {
				t.Errorf("%d calls", node.Calls)
			}
		}
		if n.Renewals < 30 || n.Renewals > 50 || int(n.Renewals) != len(of[redlock.Renewal](&r)) || n.RenewalFailed != 0 || n.LeaseUnlocked != 10 {
			t.Errorf("%d renewals, %d unlocked", n.Renewals, n.LeaseUnlocked)
		}
		if n.LongestPause > time.Millisecond || len(n.Advice) != 0 {
			t.Errorf("a pause of %v, advice %v", n.LongestPause, n.Advice)
		}
		for _, e := range of[redlock.Unlocked](&r) {
			if e.Held != 4*time.Second || e.Elapsed != trip || e.Err != nil || e.Name != "x" {
				t.Errorf("%+v", e)
			}
		}
		for _, e := range of[redlock.LockDone](&r) {
			if e.Attempts != 1 || e.Elapsed != trip || e.Err != nil || e.Token == 0 {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestStatsFailed: each way for an attempt, and a call, to fail is counted.
func TestStatsFailed(t *testing.T) {
	for failure, c := range map[redlock.Failure]struct {
		opts  []redlock.Option
		setup func(s *sim, cancel func())
		err   error
	}{
		redlock.FailedTaken: {nil, func(s *sim, _ func()) { occupy("x", time.Hour, s.all()...) }, redlock.ErrTaken},
		redlock.FailedNoQuorum: {nil, func(s *sim, _ func()) {
			for _, n := range s.first(3) {
				n.Refuse(true)
			}
		}, redlock.ErrNoQuorum},
		redlock.FailedExpired: {
			[]redlock.Option{redlock.WithMinValidity(9880 * time.Millisecond)},
			func(s *sim, _ func()) {
				for _, n := range s.all() {
					n.Delay(time.Second/4, time.Second/4)
				}
			}, redlock.ErrExpired,
		},
		redlock.FailedCanceled: {nil, func(s *sim, cancel func()) {
			for _, n := range s.all() {
				n.Blackhole(true)
			}
			time.AfterFunc(time.Second/2, cancel)
		}, context.Canceled},
		redlock.FailedClosed: {nil, func(s *sim, _ func()) {
			for _, n := range s.all() {
				n.Delay(time.Second/4, time.Second/4)
			}
			time.AfterFunc(time.Second/3, func() { noErr(s.t, s.client.Close()) })
		}, redlock.ErrClosed},
	} {
		t.Run(string(failure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r recorder
				s := simulate(t, 5, append(c.opts, redlock.WithTrace(r.trace()))...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c.setup(s, cancel)
				_, err := s.mutex("x").TryLock(ctx)
				is(t, err, c.err)
				time.Sleep(time.Second) // for Close
				if redlock.FailureOf(err) != failure || redlock.FailureOf(nil) != "" {
					t.Errorf("%q for %v", redlock.FailureOf(err), err)
				}
				n := s.client.Stats()
				for what, counts := range map[string]map[redlock.Failure]int64{"attempts": n.AttemptFailed, "calls": n.LockFailed} {
					for k, count := range counts {
						if want := map[bool]int64{true: 1}[k == failure]; count != want || len(counts) != 5 {
							t.Errorf("%s: %s: %d, want %d", what, k, count, want)
						}
					}
				}
				if n.Attempts != 1 || n.LeaseAcquired != 0 || n.LeasesHeld != 0 || n.AcquireLatency.Count+n.WaitTime.Count+n.HoldTime.Count != 0 {
					t.Errorf("%+v", n)
				}
				e := one[redlock.LockDone](t, &r)
				if !errors.Is(e.Err, err) || e.Attempts != 1 || e.Token != 0 || e.Context.Value(callKey{}) != "x" {
					t.Errorf("%+v, want %v", e, err)
				}
			})
		})
	}
}

// TestStatsRefused: a call that does not begin is not counted, and no hook is told.
func TestStatsRefused(t *testing.T) {
	var r recorder
	client, err := redlock.New(redlocktest.New(3).Nodes(), redlock.WithTrace(r.trace()))
	noErr(t, err)
	m := mutexOf(t, client, "x")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Lock(ended)
	is(t, err, context.Canceled)
	_, err = m.Lock(nil) //nolint:staticcheck // that is the test
	refuses(t, err, "nil")
	noErr(t, client.Close())
	_, err = m.TryLock(t.Context())
	is(t, err, redlock.ErrClosed)
	n := client.Stats()
	if len(r.all("LockStart"))+len(r.all("LockDone"))+len(r.all("AttemptStart")) != 0 || n.Attempts != 0 || n.LockFailed[redlock.FailedClosed]+n.LockFailed[redlock.FailedCanceled] != 0 {
		t.Errorf("%+v", n)
	}
}

// TestStatsWaiting: those who wait are counted while they do, and the nodes that call
// them; so is how long it took.
func TestStatsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		s := distant(t, 3, redlock.WithTrace(r.trace()), redlock.WithTTL(time.Hour))
		_, m := s.another(redlock.WithTTL(time.Hour))
		l := mustLock(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := await(t.Context(), s.mutex("x"))
		time.Sleep(time.Second)
		var others []*waiting
		for range 4 {
			others = append(others, await(ctx, s.mutex("x")))
		}
		time.Sleep(4 * time.Second)
		if n := s.client.Stats(); n.Waiting != 5 || n.Called != 0 {
			t.Errorf("%d wait, want 5; %d calls", n.Waiting, n.Called)
		}
		cancel()
		for _, w := range others {
			<-w.done
		}
		synctest.Wait()
		if n := s.client.Stats(); n.Waiting != 1 || n.LockFailed[redlock.FailedCanceled] != 4 {
			t.Errorf("%d wait, want 1; %v", n.Waiting, n.LockFailed)
		}
		start := time.Now()
		noErr(t, l.Unlock(t.Context()))
		held := first.within(t, start, 10*2*oneWay)
		time.Sleep(time.Second)
		n := s.client.Stats()
		called := of[redlock.Called](&r)
		if n.Waiting != 0 || n.Called < 2 || n.Called > 3 || len(called) != int(n.Called) {
			t.Errorf("%d wait; %d calls counted, %d told", n.Waiting, n.Called, len(called))
		}
		byNode := make(map[string]int64)
		for _, e := range called {
			if byNode[e.Node]++; e.Name != "x" || e.Context.Value(callKey{}) != "x" {
				t.Errorf("%+v", e)
			}
		}
		for _, node := range n.Nodes {
			if node.Called != byNode[node.Name] {
				t.Errorf("%s: %d calls, want %d", node.Name, node.Called, byNode[node.Name])
			}
		}
		if d := n.WaitTime.Max; d < 5*time.Second || d > 6*time.Second || n.WaitTime.Count != 1 || n.AcquireLatency.Max > time.Second {
			t.Errorf("waited for %v, and then took %v", d, n.AcquireLatency.Max)
		}
		noErr(t, held.Unlock(t.Context()))
	})
}

// TestStatsAddUp: in the end all leases were unlocked or lost, and all calls had an
// outcome, whatever many callers have done at once; and Stats may be read meanwhile.
func TestStatsAddUp(t *testing.T) {
	client, err := redlock.New(redlocktest.New(3).Nodes(), redlock.WithTTL(50*time.Millisecond))
	noErr(t, err)
	var wg sync.WaitGroup
	const callers, rounds = 8, 50
	for i := range callers {
		wg.Go(func() {
			m := mutexOf(t, client, fmt.Sprint(i%3))
			for j := range rounds {
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					continue
				}
				if j%10 != 0 {
					_ = l.Unlock(t.Context())
					continue
				}
				client.Stats()
				go l.Unlock(t.Context())
			}
		})
	}
	wg.Wait()
	noErr(t, client.Close())
	n := client.Stats()
	ended := n.LeaseUnlocked
	for _, lost := range n.LeaseLost {
		ended += lost
	}
	failed := int64(0)
	for _, count := range n.AttemptFailed {
		failed += count
	}
	if n.LeaseAcquired != callers*rounds || ended != n.LeaseAcquired || n.HoldTime.Count != ended || n.WaitTime.Count != ended ||
		n.LeasesHeld != 0 || n.Waiting != 0 || n.Attempts != ended+failed || n.AcquireLatency.Count != ended {
		t.Errorf("%+v", n)
	}
}
