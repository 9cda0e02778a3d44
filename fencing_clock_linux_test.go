// Fencing tokens where one real server's wall clock is far off.

package redlock_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// startOdd starts n servers, of which the first has a clock that is off.
func startOdd(t *testing.T, n int, off time.Duration) *fleet {
	t.Helper()
	clock := redisproc.WallClocks(t, 1)[0]
	noErr(t, clock.Set(off))
	odd := redisproc.Start(t, clock.Serve())
	f := startFleet(t, n-1)
	f.servers = append([]*redisproc.Server{odd}, f.servers...)
	f.isOff(off)
	return f
}

// isOff checks that the first server's clock is off: nothing else would show that
// the shim does not work.
func (f *fleet) isOff(off time.Duration) {
	f.t.Helper()
	if d := time.Duration(clockOf(f.t, f.servers[0])-clockOf(f.t, f.servers[1])) * time.Microsecond; (d - off).Abs() > 10*time.Second {
		f.t.Fatalf("the clock is off by %v, want %v", d, off)
	}
}

// An effort counts the attempts of clients, and the round trips of those that won.
type effort struct{ attempts, won, oneRound atomic.Int64 }

func (e *effort) trace() redlock.Option {
	return redlock.WithTrace(&redlock.Trace{AttemptDone: func(d redlock.AttemptDone) {
		e.attempts.Add(1)
		if d.Err == nil {
			e.won.Add(1)
			if d.Rounds == 1 {
				e.oneRound.Add(1)
			}
		}
	}})
}

func (e *effort) String() string {
	return fmt.Sprintf("%d attempts, %d won, of these %.2f %% in one round trip",
		e.attempts.Load(), e.won.Load(), 100*float64(e.oneRound.Load())/float64(max(e.won.Load(), 1)))
}

// TestFencingOddClock: a clock that is off on one node neither stops the lock nor
// moves the counters of the others, and when that node loses its data the tokens
// stay in order.
func TestFencingOddClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{50 * time.Minute, 2 * time.Hour, -2 * time.Hour} {
		for _, n := range []int{3, 5} {
			t.Run(fmt.Sprintf("%v of %d", off, n), func(t *testing.T) {
				t.Parallel()
				testOddClock(t, startOdd(t, n, off), off)
			})
		}
	}
}

func testOddClock(t *testing.T, f *fleet, off time.Duration) {
	const bound = 10 * time.Second
	var g ledger
	var one effort
	m := f.mutex("m", one.trace(), redlock.WithClockBound(bound))
	contend := func(times int) {
		t.Helper()
		for range times {
			mustUnlock(t, g.lock(t, m))
			f.free(0) // what is still on its way would fail the next attempt
		}
		g.check(t)
		f.inBounds(bound)
	}
	contend(300)
	t.Logf("one caller: %v", &one)
	if attempts, won := one.attempts.Load(), one.won.Load(); (attempts-won)*100 > attempts {
		t.Errorf("%d of %d attempts have failed", attempts-won, attempts)
	}

	odd := f.servers[0]
	for _, lose := range []func(){
		func() { ask(t, odd, "FLUSHALL") },
		func() { noErr(t, odd.RestartEmpty()); f.isOff(off) },
		func() { ask(t, odd, "SCRIPT", "FLUSH") },
	} {
		lose()
		contend(20)
	}

	var many effort
	var wg sync.WaitGroup
	for i := range 8 {
		m := f.mutex("m", many.trace(), redlock.WithClockBound(bound))
		wg.Go(func() {
			for j := range 25 {
				if i == 0 && j%8 == 4 {
					ask(t, odd, "FLUSHALL")
				}
				mustUnlock(t, g.lock(t, m))
			}
		})
	}
	wg.Wait()
	g.check(t)
	f.inBounds(bound)
	t.Logf("8 contenders: %v", &many)
}

// inBounds checks that no counter but the first server's is ahead of its clock by
// more than the bound.
func (f *fleet) inBounds(bound time.Duration) {
	f.t.Helper()
	for i, s := range f.servers[1:] {
		n := counter(f.t, s, "m")
		if ahead := time.Duration(n-clockOf(f.t, s)) * time.Microsecond; n == 0 || ahead > bound {
			f.t.Errorf("node %d: the counter %d is ahead of the clock by %v", i+1, n, ahead)
		}
	}
}

// TestFencingOutlier: a number far ahead, which is among the first that make a
// quorum, costs a round trip and no more: the others refuse it and go on to agree
// on one of their own, also if they have to be raised for that.
func TestFencingOutlier(t *testing.T) {
	t.Parallel()
	f := startOdd(t, 3, 2*time.Hour)
	for _, s := range f.servers {
		f.proxies = append(f.proxies, netfault.New(t, s.Addr()))
	}
	var done redlock.AttemptDone
	refused := make(chan redlock.NodeDone, 10)
	c := f.open(redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(10*time.Second), redlock.WithTrace(&redlock.Trace{
		AttemptDone: func(d redlock.AttemptDone) { done = d },
		NodeDone: func(d redlock.NodeDone) {
			if d.Op == "raise" && d.Err != nil {
				select {
				case refused <- d:
				default: // no more than a few are expected
				}
			}
		},
	}))
	f.warm(c)
	for len(refused) > 0 {
		<-refused
	}
	(&fleet{t: t, servers: f.servers[1:]}).stagger("m")
	want := counter(t, f.servers[2], "m") + 1 // the higher one, and one

	hold := f.proxies[2].HoldRequests(isAcquire, 0)
	go func() {
		if d := <-refused; d.Node != f.addr(1) || !strings.Contains(d.Err.Error(), "REDLOCKAHEAD") {
			t.Errorf("node %s, not %s, would not be raised: %v", d.Node, f.addr(1), d.Err)
		}
		hold.Release()
	}()
	l, err := mutexOf(t, c, "m").TryLock(t.Context())
	noErr(t, err)
	if l.FencingToken() != want || done.Rounds != 3 {
		t.Errorf("token %d after %d round trips, want %d after 3", l.FencingToken(), done.Rounds, want)
	}
	f.agree(l, 2)
	f.inBounds(10 * time.Second)
	mustUnlock(t, l)
}
