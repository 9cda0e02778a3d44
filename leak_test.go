// Nothing is left behind: goroutines, timers, keys; and nobody is in a critical
// section beside somebody else. The tests that count what belongs to the whole
// process run alone.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
)

// TestLeakCycles locks and unlocks many times.
func TestLeakCycles(t *testing.T) {
	const callers = 8
	cycles := 10_000
	if testing.Short() {
		cycles = 1_000
	}
	f := startFleet(t, 3)
	c := f.open(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(10*time.Second)) // so that a timer left running stays
	run := func(cycles int) {
		var wg sync.WaitGroup
		for i := range callers {
			m := mutexOf(t, c, fmt.Sprint(i))
			wg.Go(func() {
				for range cycles / callers {
					l := mustLock(t, m)
					l.Context()
					mustUnlock(t, l)
				}
			})
		}
		wg.Wait()
		f.noLocks(10 * time.Second)
		time.Sleep(50 * time.Millisecond) // for the last answers
	}
	run(50 * callers)
	goroutines, objects := runtime.NumGoroutine(), heapObjects()
	run(cycles)
	if !eventually(5*time.Second, func() bool { return runtime.NumGoroutine() <= goroutines+2 }) {
		t.Errorf("%d goroutines after %d cycles, %d before", runtime.NumGoroutine(), cycles, goroutines)
	}
	// A timer that is left keeps its round, and all that this refers to.
	if more := heapObjects() - objects; more > cycles/2 {
		t.Errorf("%d objects more after %d cycles", more, cycles)
	}
	for i, s := range f.servers {
		if keys := lockKeys(t, s); len(keys) > 0 {
			t.Errorf("node %d has keys: %q", i, keys)
		}
	}
}

func heapObjects() int {
	var m runtime.MemStats
	for range 3 { // pools are emptied in two steps
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapObjects)
}

// ours returns the stacks of goroutines that run this library.
func ours() []string {
	buf := make([]byte, 8<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var found []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "quorumlock/redlock.") {
			found = append(found, stack)
		}
	}
	return found
}

// TestLeakClose closes a client in the middle of things. Close returns in time,
// and a second later no goroutine of the library is left.
func TestLeakClose(t *testing.T) {
	const nodeTimeout = 250 * time.Millisecond
	situations := map[string]struct {
		prepare func(f *fleet)
		heal    func(f *fleet)
	}{
		"healthy": {func(*fleet) {}, func(*fleet) {}},
		"one silent": {
			func(f *fleet) { f.proxies[0].Blackhole(true) },
			func(f *fleet) { f.proxies[0].Blackhole(false) },
		},
		"all silent": {
			func(f *fleet) { f.each(func(i int) { f.proxies[i].Blackhole(true) }) },
			func(f *fleet) { f.each(func(i int) { f.proxies[i].Blackhole(false) }) },
		},
		"all refused": {
			func(f *fleet) { f.each(func(i int) { f.proxies[i].Refuse(true) }) },
			func(f *fleet) { f.each(func(i int) { f.proxies[i].Refuse(false) }) },
		},
		"two stopped": {
			func(f *fleet) { f.servers[0].Pause(); f.servers[1].Pause() },
			func(f *fleet) { f.servers[0].Resume(); f.servers[1].Resume() },
		},
	}
	for name, situation := range situations {
		t.Run(name, func(t *testing.T) {
			f := startProxied(t, 3)
			c := f.open(redlock.WithTTL(2*time.Second), redlock.WithNodeTimeout(nodeTimeout))
			f.warm(c)
			held := mustLock(t, mutexOf(t, c, "held"))
			f.settled(3)
			var callers sync.WaitGroup
			for i := range 8 {
				m := mutexOf(t, c, fmt.Sprint("m", i/2)) // half of them wait
				callers.Go(func() {
					for {
						l, err := m.Lock(context.Background())
						if err != nil {
							is(t, err, redlock.ErrClosed)
							return
						}
						time.Sleep(time.Millisecond)
						_ = l.Unlock(context.Background())
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			situation.prepare(f)
			time.Sleep(2 * nodeTimeout)

			var err error
			if d := took(func() { err = c.Close() }); d > 4*nodeTimeout+time.Second+quick {
				t.Errorf("Close took %v", d)
			}
			if name == "healthy" {
				noErr(t, err)
			}
			is(t, held.Err(), redlock.ErrClosed)
			callers.Wait()
			if !eventually(time.Second, func() bool { return len(ours()) == 0 }) {
				t.Errorf("a second after Close:\n%s", strings.Join(ours(), "\n\n"))
			}
			situation.heal(f)
			if name == "healthy" || name == "one silent" {
				f.noLocks(5 * time.Second) // the one that was silent has the TTL
			}
		})
	}
}

func (f *fleet) each(do func(i int)) {
	for i := range f.servers {
		do(i)
	}
}

// TestAlone: a caller whom nobody disturbs never finds the lock taken by itself, by a
// release of the last time that is still on its way.
func TestAlone(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	c := f.open()
	f.warm(c)
	m := mutexOf(t, c, "m")
	slow, cycles := 0, 3000
	if testing.Short() {
		cycles = 300
	}
	for i := range cycles {
		l, err := m.TryLock(t.Context())
		if q, ok := errors.AsType[*redlock.QuorumError](err); ok && q.Denied == 0 {
			slow++
			f.noLocks(10 * time.Second) // no quorum within a node timeout: a very busy machine
			continue
		}
		if err != nil {
			t.Fatalf("attempt %d: %v", i, err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if slow > cycles/100 {
		t.Errorf("%d of %d attempts had no answer", slow, cycles)
	}
}

// TestAloneDelayed is the same with delays that make it certain: the release of the
// first token is late on one node and that of the second token on another, and
// both Unlocks had their confirmations. The next attempt has to wait for them.
func TestAloneDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 20 * time.Millisecond
		s := simulate(t, 3)
		s.Node(2).Delay(late, 0)
		mustUnlock(t, s.lock("m"))
		time.Sleep(late + late/4) // the first token is there, its release on the way
		s.Node(2).Delay(0, 0)
		l := s.lock("m")
		s.Node(1).Delay(late, 0)
		mustUnlock(t, l)
		synctest.Wait() // the release is on its way
		s.Node(1).Delay(0, 0)
		l, err := s.mutex("m").TryLock(t.Context())
		if err != nil {
			t.Fatalf("the lock is free, and its only user is told: %v", err)
		}
		mustUnlock(t, l)
	})
}

// TestContention has 16 callers of two clients compete for one lock.
func TestContention(t *testing.T) {
	t.Parallel()
	const callers = 16
	turns := 20
	if testing.Short() {
		turns = 5
	}
	f := startFleet(t, 3)
	clients := []*redlock.Client{f.open(), f.open()}
	var inside, overlaps, total atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		m := mutexOf(t, clients[i%2], "m")
		wg.Go(func() {
			for range turns {
				l := mustLock(t, m)
				if inside.Add(1) != 1 {
					overlaps.Add(1)
				}
				time.Sleep(rand.N(time.Millisecond))
				inside.Add(-1)
				if err := l.Err(); err != nil {
					t.Error(err)
				}
				mustUnlock(t, l)
				total.Add(1)
			}
		})
	}
	wg.Wait()
	if n := overlaps.Load(); n > 0 || total.Load() != int64(callers*turns) {
		t.Errorf("%d turns, %d of them with somebody else inside", total.Load(), n)
	}
	f.noLocks(10 * time.Second)
}
