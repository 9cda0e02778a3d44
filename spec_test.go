// The published algorithm step by step: acquiring. Releasing and extending are in
// spec_keep_test.go.
//
// The steps are those of "Distributed Locks with Redis", as numbered here: 1 a
// unique value, 2 the clock is read, 3 all nodes are asked, 4 with a timeout each,
// 5 the clock is read again, 6 the validity, 7 unlocking after a failure, 8 a
// random delay, 9 all nodes at the same moment, 10 the release, 11 the extension.

package redlock_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
)

// Step 1: the value is unique among all clients and all requests. Ours is unique
// for each attempt, so that a late command of one never meets the key of the
// next, and for each node, so that one server cannot vote twice.
func TestSpec01UniqueValue(t *testing.T) {
	token := regexp.MustCompile(`^[A-Z2-7]{26}$`) // 130 bits
	synctest.Test(t, func(t *testing.T) {
		seen, attempts := map[string]bool{}, map[string]bool{}
		for range 2 { // clients
			s := simulate(t, 5)
			occupy("held", 0, s.all()...)
			for range 20 {
				_, err := s.mutex("held").TryLock(t.Context())
				is(t, err, redlock.ErrTaken)
			}
			for range 20 {
				l := s.lock("free")
				if !token.MatchString(l.Token()) {
					t.Errorf("token %q", l.Token())
				}
				synctest.Wait()
				for i, n := range s.all() {
					if v, _, _ := n.Get("lock:free"); v != l.Token()+"."+strconv.Itoa(i) {
						t.Errorf("node %d holds %q of the token %q", i, v, l.Token())
					}
				}
				noErr(t, l.Unlock(t.Context()))
				synctest.Wait()
			}
			for _, n := range s.all() {
				for _, c := range n.Calls() {
					if c.Op != redlocktest.Acquire {
						continue
					}
					if seen[c.Value] {
						t.Errorf("value %q was used twice", c.Value)
					}
					seen[c.Value] = true
					token, _, _ := strings.Cut(c.Value, ".")
					attempts[token] = true
				}
			}
		}
		if want := 2 * (20 + 20); len(attempts) != want {
			t.Errorf("%d tokens in %d attempts", len(attempts), want)
		}
	})
}

// A sluggish clock takes a second for each reading, which is the time at its end.
type sluggish struct {
	clock.Clock
	on *atomic.Bool
}

func (c sluggish) Elapsed() time.Duration {
	if c.on.Load() {
		time.Sleep(time.Second)
	}
	return c.Clock.Elapsed()
}

// Step 2: the time is read before the first node is asked. However much passes
// between the two readings and the commands, the lease must end before any key
// that it counts on.
func TestSpec02ClockBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Minute
		var slow atomic.Bool
		s := simulate(t, 3, redlock.WithTTL(ttl), redlock.WithClock(sluggish{clock.System, &slow}), redlock.WithoutRenewal())
		m := s.mutex("x")
		slow.Store(true)
		l, err := m.TryLock(t.Context())
		slow.Store(false)
		noErr(t, err)
		left := l.Remaining()
		ends := time.Now().Add(left)
		if left <= 0 {
			t.Fatal("nothing is left")
		}
		for i, n := range s.all() {
			if at := n.Calls()[0].At; ends.After(at.Add(ttl - standard.Of(ttl))) {
				t.Errorf("node %d was asked at %v; the lease ends %v after that", i, at, ends.Sub(at))
			}
		}
		noErr(t, l.Unlock(t.Context()))
	})
}

// Step 3: SET with NX and PX on all nodes, with the same key and the whole TTL.
func TestSpec03SetOnAllNodes(t *testing.T) {
	const ttl = 67_890 * time.Millisecond
	f := startFleet(t, 5)
	m := f.mutex("x", redlock.WithTTL(ttl))
	_, err := f.servers[4].Do("SET", "lock:x", foreign)
	noErr(t, err)
	before := time.Now()
	l := mustLock(t, m)
	if !eventually(10*time.Second, func() bool {
		_, err := f.servers[3].Do("GET", "lock:x")
		return err == nil && calls(t, f.servers[4], "evalsha") > 0
	}) {
		t.Fatal("not all nodes were asked")
	}
	for i, s := range f.servers {
		want := l.Token() + "." + strconv.Itoa(i)
		if i == 4 { // not set if it exists
			want = foreign
		}
		var value string
		if !eventually(10*time.Second, func() bool {
			value, err = s.Do("GET", "lock:x")
			return err == nil && value == want
		}) {
			t.Errorf("node %d holds %q, %v; want %q", i, value, err, want)
		}
		text, err := s.Do("PTTL", "lock:x")
		noErr(t, err)
		ms, err := strconv.Atoi(text)
		noErr(t, err)
		least := ttl - time.Since(before) - 10*time.Millisecond
		if left := time.Duration(ms) * time.Millisecond; left > ttl || left < least && i != 4 || i == 4 && ms != -1 {
			t.Errorf("node %d: the key has %v left of %v", i, left, ttl)
		}
	}
	mustUnlock(t, l)
}

// Step 4: a node that does not answer costs a node timeout, small against the
// TTL, and only if a quorum does not answer without it. That holds on every path,
// whatever the driver does with its context.
func TestSpec04NodeTimeout(t *testing.T) {
	for _, c := range []struct {
		name    string
		silence func(n *redlocktest.Node, on bool)
		ignores bool
	}{
		{"black hole", (*redlocktest.Node).Blackhole, false},
		{"lost replies", (*redlocktest.Node).DropReplies, false},
		{"driver ignores its context", (*redlocktest.Node).Blackhole, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 5, redlock.WithoutRenewal())
				set := func(nodes int, on bool) {
					for _, n := range s.first(nodes) {
						n.IgnoreContext(on && c.ignores)
						c.silence(n, on)
						if !on {
							n.Restart(true) // ends the calls that ignore their context
						}
					}
				}
				timed := func(what string, want time.Duration, wantErr error, f func() error) {
					t.Helper()
					var err error
					exactly(t, what, took(func() { err = f() }), want)
					if wantErr == nil {
						noErr(t, err)
					} else {
						is(t, err, wantErr, redlock.ErrNodeTimeout)
					}
				}

				set(2, true) // a minority costs nothing
				var l *redlock.Lease
				lock := func() (err error) { l, err = s.mutex("x").TryLock(t.Context()); return err }
				timed("lock", 0, nil, lock)
				timed("extend", 0, nil, func() error { return l.Extend(t.Context()) })
				timed("unlock", 0, nil, func() error { return l.Unlock(t.Context()) })
				set(2, false)

				time.Sleep(time.Minute)
				l = s.lock("x")
				synctest.Wait()
				set(3, true) // a majority costs the timeout, once
				other := s.mutex("y")
				timed("lock", time.Second, redlock.ErrNoQuorum, func() error { _, err := other.TryLock(t.Context()); return err })
				timed("extend", time.Second, redlock.ErrNoQuorum, func() error { return l.Extend(t.Context()) })
				noErr(t, l.Err())
				timed("unlock", time.Second, redlock.ErrNoQuorum, func() error { return l.Unlock(t.Context()) })
				set(3, false)
			})
		})
	}
}

// Step 4 on real servers, over a driver with default options that would wait for
// five seconds and longer.
func TestSpec04NodeTimeoutOfStoppedServers(t *testing.T) {
	f := startFleet(t, 3)
	c := f.open(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(300*time.Millisecond))
	warm(t, c)
	noErr(t, f.servers[0].Pause())
	l := mustLock(t, mutexOf(t, c, "x"))
	noErr(t, f.servers[1].Pause())
	for _, op := range []struct {
		name string
		run  func() error
	}{
		{"lock", func() error { _, err := mutexOf(t, c, "y").TryLock(t.Context()); return err }},
		{"extend", func() error { return l.Extend(t.Context()) }},
		{"unlock", func() error { return l.Unlock(t.Context()) }},
	} {
		var err error
		if d := took(func() { err = op.run() }); d < 300*time.Millisecond || d > 3*time.Second {
			t.Errorf("%s took %v", op.name, d)
		}
		is(t, err, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
		isNot(t, err, context.DeadlineExceeded)
	}
	noErr(t, f.servers[0].Resume())
	noErr(t, f.servers[1].Resume())
	f.noLocks(10 * time.Second)
}

// Step 5: the time is read again when the votes are there. A lock whose validity
// has passed by then is not held, though a quorum granted it.
func TestSpec05ClockAfterVotes(t *testing.T) {
	const ttl, roundTrip = 10 * time.Second, time.Millisecond
	left := standard.Validity(ttl, roundTrip)
	for _, c := range []struct {
		sleeps time.Duration // the machine, between the sending and the votes
		holds  bool
	}{
		{0, true},
		{left - 1, true},
		{left, false},
		{ttl + time.Millisecond, false},
		{1000 * time.Hour, false},
	} {
		t.Run(fmt.Sprint(c.sleeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clock.NewSkewed(clock.System, clock.Skew{})
				s := simulate(t, 5, redlock.WithClock(clk), redlock.WithTTL(ttl), redlock.WithoutRenewal())
				for _, n := range s.all() {
					n.Delay(0, roundTrip)
				}
				s.Node(0).Observe(func(call redlocktest.Call) {
					if call.Op == redlocktest.Acquire {
						clk.Suspend(c.sleeps)
					}
				})
				l, err := s.mutex("x").TryLock(t.Context())
				if c.holds {
					noErr(t, err)
					exactly(t, "remaining", l.Remaining(), left-c.sleeps)
					noErr(t, l.Unlock(t.Context()))
				} else {
					is(t, err, redlock.ErrExpired)
					isNot(t, err, redlock.ErrTaken, redlock.ErrNoQuorum)
				}
				time.Sleep(time.Second)
				s.noLocks()
			})
		})
	}
}

// Step 6: validity is exactly TTL - elapsed - drift, on the client's own clock.
func TestSpec06Validity(t *testing.T) {
	for _, c := range []struct {
		rate           float64
		ttl, roundTrip time.Duration
		drift          redlock.Drift
	}{
		{1, 10 * time.Second, 0, standard},
		{1, 10 * time.Second, 137 * time.Millisecond, standard},
		{1, 30 * time.Second, 999 * time.Millisecond, drift(0.1, 20*time.Millisecond)},
		{2, 10 * time.Second, 300 * time.Millisecond, standard},
		{0.5, 10 * time.Second, 300 * time.Millisecond, standard},
		{4, 500 * time.Millisecond, 50 * time.Millisecond, drift(0, 0)},
	} {
		t.Run(fmt.Sprintf("rate=%v/ttl=%v", c.rate, c.ttl), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var traced time.Duration
				clk := clock.NewSkewed(clock.System, clock.Skew{Rate: c.rate, Offset: -time.Hour})
				s := simulate(t, 5, redlock.WithClock(clk), redlock.WithTTL(c.ttl), redlock.WithDrift(c.drift), redlock.WithoutRenewal(),
					redlock.WithTrace(&redlock.Trace{AttemptDone: func(e redlock.AttemptDone) { traced = e.Validity }}))
				for i, n := range s.all() {
					n.Delay(c.roundTrip/2, c.roundTrip-c.roundTrip/2)
					if i >= 3 {
						n.Delay(time.Minute, 0) // the quorum's time counts
					}
				}
				l := s.lock("x")
				elapsed := time.Duration(float64(c.roundTrip) * c.rate)
				want := c.ttl - elapsed - time.Duration(float64(c.ttl)*c.drift.Factor) - c.drift.Floor
				exactly(t, "validity", l.Remaining(), want)
				exactly(t, "traced validity", traced, want)
				if got := l.Deadline(); !got.Equal(clk.Now().Add(want)) {
					t.Errorf("deadline %v, want %v", got, clk.Now().Add(want))
				}
				for _, n := range s.all() {
					n.Delay(0, 0)
				}
				noErr(t, l.Unlock(t.Context()))
			})
		})
	}
}
