// The published algorithm step by step: failing, trying again, releasing and
// extending. The steps are those of spec_test.go.

package redlock_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// Step 7: if the lock was not taken, it is unlocked on all nodes, even where that
// seemed not to be locked: a command whose reply was lost may have done its work.
func TestSpec07UnlockEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 7)
		occupy("x", 0, s.Node(0), s.Node(1))                                                             // refuse
		s.Node(2).LoseReplies(1)                                                                         // grants, nobody hears of it
		s.Node(3).DropReplies(true)                                                                      // likewise, and says nothing later either
		s.Node(4).FailWith(errors.New("OOM command not allowed"), redlock.Rejected, redlocktest.Acquire) // fails
		_, err := s.mutex("x").TryLock(t.Context())                                                      // 5 and 6 grant
		is(t, err, redlock.ErrNoQuorum)
		time.Sleep(2 * time.Second)
		for i, n := range s.all() {
			acquires, releases := 0, 0
			for _, c := range n.Calls() {
				switch c.Op {
				case redlocktest.Acquire:
					acquires++
				case redlocktest.Release:
					releases++
				}
			}
			if acquires > 0 && releases == 0 {
				t.Errorf("node %d was asked to lock and not to unlock", i)
			}
			v, _, ok := n.Get("lock:x")
			if want := i < 2; ok != want || ok && v != foreign {
				t.Errorf("node %d holds %q, %t", i, v, ok)
			}
		}
		s.Node(3).DropReplies(false)
	})
}

// Step 7 on real servers: two of five grant, three refuse.
func TestSpec07UnlockEverywhereOnServers(t *testing.T) {
	f := startFleet(t, 5)
	m := f.mutex("x")
	for _, s := range f.servers[:3] {
		_, err := s.Do("SET", "lock:x", foreign)
		noErr(t, err)
	}
	_, err := m.TryLock(t.Context())
	is(t, err, redlock.ErrTaken)
	for i, s := range f.servers {
		want := "(nil)"
		if i < 3 {
			want = foreign
		}
		var v string
		if !eventually(10*time.Second, func() bool {
			v, err = s.Do("GET", "lock:x")
			return err == nil && v == want
		}) {
			t.Errorf("node %d holds %q, %v", i, v, err)
		}
	}
}

// Step 8: after a failure the client waits for a random delay, clearly longer
// than it takes to ask a majority, and longer the more often it failed, so that
// contenders get out of step. But not for ever.
func TestSpec08RandomDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts, contenders = 12, 20
		var mu sync.Mutex
		delays := make([][]time.Duration, attempts+1)
		s := simulate(t, 3)
		opts := []redlock.Option{redlock.WithMaxAttempts(attempts), redlock.WithTrace(&redlock.Trace{
			Wait: func(w redlock.Wait) {
				mu.Lock()
				defer mu.Unlock()
				delays[w.Attempt] = append(delays[w.Attempt], w.Delay)
			},
		})}
		occupy("x", 0, s.all()...)
		var wg sync.WaitGroup
		for range contenders { // those of one client follow each other
			m := mutexOf(t, openClient(t, s.linelessNodes(), opts...), "x")
			wg.Go(func() {
				start := time.Now()
				_, err := m.Lock(t.Context())
				is(t, err, redlock.ErrTaken)
				if time.Since(start) == 0 {
					t.Error("no delay at all")
				}
			})
		}
		wg.Wait()
		window := 16 * time.Millisecond
		for attempt := 1; attempt < attempts; attempt++ {
			distinct := map[time.Duration]bool{}
			late := 0
			for _, d := range delays[attempt] {
				if d < 0 || d > window {
					t.Errorf("attempt %d: delay %v, want at most %v", attempt, d, window)
				}
				if d > window/2 {
					late++
				}
				distinct[d] = true
			}
			if len(delays[attempt]) != contenders || len(distinct) < contenders-2 {
				t.Errorf("attempt %d: delays %v", attempt, delays[attempt])
			}
			if late == 0 || late == contenders { // one in 500,000 by chance
				t.Errorf("attempt %d: %d of %d delays are in the later half", attempt, late, contenders)
			}
			window = min(2*window, 256*time.Millisecond)
		}
		if len(delays[attempts]) > 0 {
			t.Error("it waited after the last attempt")
		}
	})
}

// Step 9: all nodes are asked at the same moment, and a partial win is given up at
// once, so that the time in which contenders can split the votes is short.
func TestSpec09AllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		for i, n := range s.all() {
			n.Delay(0, time.Duration(100*(i+1))*time.Millisecond)
		}
		start := time.Now()
		var l *redlock.Lease
		exactly(t, "lock", took(func() { l = s.lock("x") }), 300*time.Millisecond)
		for i, n := range s.all() {
			if c := n.Calls()[0]; !c.At.Equal(start) {
				t.Errorf("node %d was asked %v after the start", i, c.At.Sub(start))
			}
		}
		time.Sleep(time.Second)
		start = time.Now()
		exactly(t, "extend", took(func() { noErr(t, l.Extend(t.Context())) }), 300*time.Millisecond)
		exactly(t, "unlock", took(func() { noErr(t, l.Unlock(t.Context())) }), 300*time.Millisecond)
		time.Sleep(time.Second)
		for i, n := range s.all() {
			extend, release := n.Calls()[1].At.Sub(start), n.Calls()[2].At.Sub(start)
			// The release follows the answer to the extension.
			if want := time.Duration(max(300, 100*(i+1))) * time.Millisecond; extend != 0 || release != want {
				t.Errorf("node %d was asked to extend after %v, to release after %v, want %v", i, extend, release, want)
			}
		}

		// A lost vote is known after 300 ms, and released at that moment.
		occupy("y", 0, s.first(3)...)
		for _, n := range s.all() {
			n.ResetCalls()
			n.Delay(0, 0)
		}
		for _, n := range s.first(3) {
			n.Delay(0, 300*time.Millisecond)
		}
		start = time.Now()
		_, err := s.mutex("y").TryLock(t.Context())
		is(t, err, redlock.ErrTaken)
		time.Sleep(time.Second)
		for _, n := range s.all()[3:] {
			if c := n.Calls(); len(c) != 2 || c[1].Op != redlocktest.Release || c[1].At.Sub(start) != 300*time.Millisecond {
				t.Errorf("%s executed %+v", n.Name(), c)
			}
		}
		s.heal()
	})
}

// Step 10: a release deletes the key only where it holds the own value, on real
// servers, also for an attempt that failed.
func TestSpec10CompareAndDelete(t *testing.T) {
	f := startFleet(t, 5)
	c := f.open()
	l := mustLock(t, mutexOf(t, c, "x"))
	f.until("x", func(i int) string { return l.Token() + "." + strconv.Itoa(i) })
	for i, value := range []string{foreign, l.Token(), l.Token() + ".0", ""} {
		// The last three are as near to the own value, of node i, as can be.
		_, err := f.servers[i].Do("SET", "lock:x", value)
		noErr(t, err)
	}
	if err := l.Unlock(t.Context()); err != nil { // which of the answers come first is chance
		is(t, err, redlock.ErrNotHeld)
	}
	f.until("x", func(i int) string { return []string{foreign, l.Token(), l.Token() + ".0", "", "(nil)"}[i] })

	// A value of another type is not ours either.
	l = mustLock(t, mutexOf(t, c, "y"))
	f.until("y", func(i int) string { return l.Token() + "." + strconv.Itoa(i) })
	for _, args := range [][]string{{"DEL", "lock:y"}, {"RPUSH", "lock:y", l.Token() + ".0"}} {
		_, err := f.servers[0].Do(args...)
		noErr(t, err)
	}
	noErr(t, l.Unlock(t.Context()))
	if n, err := f.servers[0].Do("LLEN", "lock:y"); n != "1" {
		t.Errorf("the list is %q, %v", n, err)
	}
}

// until waits until each server holds the value that it should.
func (f *fleet) until(name string, want func(node int) string) {
	f.t.Helper()
	for i, s := range f.servers {
		var v string
		var err error
		if !eventually(10*time.Second, func() bool {
			v, err = s.Do("GET", "lock:"+name)
			return err == nil && v == want(i)
		}) {
			f.t.Errorf("node %d holds %q, %v; want %q", i, v, err, want(i))
		}
	}
}

// Step 11: an extension renews the key only where it exists and holds the own
// value, and counts if a quorum did so.
func TestSpec11ExtendOnlyOwn(t *testing.T) {
	f := startFleet(t, 5)
	const ttl, aged = time.Minute, 30 * time.Second
	l := mustLock(t, mutexOf(t, f.open(redlock.WithTTL(ttl), redlock.WithoutRenewal()), "x"))
	mine := func(i int) string { return l.Token() + "." + strconv.Itoa(i) }
	f.until("x", mine)
	do := func(node int, args ...string) string {
		t.Helper()
		reply, err := f.servers[node].Do(args...)
		noErr(t, err)
		return reply
	}
	for i := range f.servers {
		do(i, "PEXPIRE", "lock:x", fmt.Sprint(aged.Milliseconds()))
	}
	do(0, "SET", "lock:x", foreign, "PX", fmt.Sprint(aged.Milliseconds()))
	noErr(t, l.Extend(t.Context()))
	for i := range f.servers {
		renewed := func() bool {
			ms, err := strconv.Atoi(do(i, "PTTL", "lock:x"))
			return err == nil && time.Duration(ms)*time.Millisecond > aged
		}
		if i == 0 {
			if do(i, "GET", "lock:x") != foreign || renewed() {
				t.Error("another holder's lock was renewed")
			}
		} else if !eventually(10*time.Second, renewed) {
			t.Errorf("node %d did not renew the lock", i)
		}
	}

	// Two others forget it. That is no quorum, and nothing is created.
	do(1, "DEL", "lock:x")
	do(2, "DEL", "lock:x")
	err := l.Extend(t.Context())
	is(t, err, redlock.ErrNotHeld)
	is(t, l.Err(), redlock.ErrLost)
	f.until("x", func(i int) string {
		if i == 0 {
			return foreign
		}
		return "(nil)"
	})
}

// Step 11: its validity counts from before the renewals are sent.
func TestSpec11ExtendValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, pause, roundTrip = 10 * time.Second, 5 * time.Second, 700 * time.Millisecond
		s := simulate(t, 5, redlock.WithTTL(ttl), redlock.WithoutRenewal())
		l := s.lock("x")
		time.Sleep(pause)
		for _, n := range s.all() {
			n.Delay(roundTrip/2, roundTrip/2)
		}
		exactly(t, "extend", took(func() { noErr(t, l.Extend(t.Context())) }), roundTrip)
		exactly(t, "remaining", l.Remaining(), standard.Validity(ttl, roundTrip))

		// It counts only inside the validity.
		time.Sleep(l.Remaining() - roundTrip)
		is(t, l.Extend(t.Context()), redlock.ErrNotHeld, redlock.ErrExpired)
		is(t, l.Err(), redlock.ErrLost, redlock.ErrExpired)
		s.heal()
		time.Sleep(time.Second)
		s.noLocks()
	})
}
