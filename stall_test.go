// A node that stands still, under load: it costs the others nothing, the process
// a bounded amount, and itself no flood when it wakes.

package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
)

// The bounds that a client promises for each node.
const (
	underWayBound = 256  // commands at the driver
	waitingBound  = 1024 // commands in the client's own queue
	repeatsBound  = 1024 // releases to be repeated

	// What a node executes at most when it wakes, however long it was stalled: an
	// acquire and a release of each token that may still be there.
	wakeBound = 2 * (underWayBound + repeatsBound)
)

// A crowd is callers that lock and unlock, each a lock of its own.
type crowd struct {
	stop  context.CancelFunc
	wg    sync.WaitGroup
	mu    sync.Mutex
	times []time.Duration // of one lock and unlock
	errs  []error
}

func startCrowd(t testing.TB, c *redlock.Client, callers int) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	k := &crowd{stop: stop}
	for i := range callers {
		m := mutexOf(t, c, fmt.Sprintf("caller-%d", i))
		k.wg.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				l, err := m.Lock(ctx)
				if err == nil {
					err = l.Unlock(context.WithoutCancel(ctx))
				}
				k.mu.Lock()
				if err == nil {
					k.times = append(k.times, time.Since(start))
				} else if ctx.Err() == nil {
					k.errs = append(k.errs, err)
				}
				k.mu.Unlock()
			}
		})
	}
	return k
}

// take returns the times and errors since the last call.
func (k *crowd) take() ([]time.Duration, []error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	times, errs := k.times, k.errs
	k.times, k.errs = nil, nil
	slices.Sort(times)
	return times, errs
}

// disperse ends the crowd. Calls that do not return are a failure at once, with
// every goroutine's stack, and not when the time of all tests is over.
func (k *crowd) disperse(t testing.TB) {
	t.Helper()
	k.stop()
	gone := make(chan struct{})
	go func() { k.wg.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		stacks := make([]byte, 1<<20)
		t.Fatalf("calls hang:\n%.20000s", stacks[:runtime.Stack(stacks, true)])
	}
}

// middle is the median, or an hour if there is nothing.
func middle(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return time.Hour
	}
	return sorted[len(sorted)/2]
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestStallStoppedServer stops one of three servers for a while. It counts the
// goroutines of the whole process, so it must run alone.
func TestStallStoppedServer(t *testing.T) {
	const callers, stall, nodeTimeout = 32, 2500 * time.Millisecond, time.Second
	f := startFleet(t, 3)
	c := f.open(redlock.WithNodeTimeout(nodeTimeout))
	f.warm(c)
	goroutines, memory := runtime.NumGoroutine(), heap()
	k := startCrowd(t, c, callers)
	time.Sleep(500 * time.Millisecond)
	healthy, errs := k.take()
	if len(errs) > 0 {
		t.Fatalf("before the stall: %v", errs[0])
	}

	stopped := f.servers[0]
	before := scripts(t, stopped)
	stopped.Pause()
	most := 0
	for end := time.Now().Add(stall); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		most = max(most, runtime.NumGoroutine()-goroutines)
	}
	grown := heap() - memory
	k.disperse(t)
	stalled, errs := k.take()

	// The others go on as before, without an error.
	for _, err := range errs {
		t.Errorf("during the stall: %v", err)
	}
	if m, was := middle(stalled), middle(healthy); m > 10*was+20*time.Millisecond {
		t.Errorf("lock and unlock took %v during the stall, %v before it (medians of %d and %d)", m, was, len(stalled), len(healthy))
	}
	// One goroutine for each command under way, some for each caller, and the
	// driver's own.
	if bound := underWayBound + 8*callers + 128; most > bound {
		t.Errorf("%d goroutines more during the stall, want at most %d", most, bound)
	}
	if bound := (underWayBound + waitingBound + repeatsBound) * 8 << 10; grown > bound {
		t.Errorf("%d bytes more during the stall, want at most %d", grown, bound)
	}

	stopped.Resume()
	f.noLocks(2 * nodeTimeout)
	time.Sleep(100 * time.Millisecond) // for whatever else has arrived
	if n, bound := scripts(t, stopped)-before, wakeBound; n > bound {
		t.Errorf("the server woke up to %d commands, want at most %d", n, bound)
	}
	f.noLocks(0)
	if !eventually(10*time.Second, func() bool { return runtime.NumGoroutine() <= goroutines+callers/4 }) {
		t.Errorf("%d goroutines after the stall, %d before", runtime.NumGoroutine(), goroutines)
	}
	t.Logf("%d cycles of %v before, %d of %v during the stall (medians); %d goroutines, %d kB more; %d commands",
		len(healthy), middle(healthy), len(stalled), middle(stalled), most, grown>>10, scripts(t, stopped)-before)
}

// TestStallSilentNode: however many attempts are made while a node is silent, and
// for however long, no release that has something to delete there gets lost, and
// none is said to be.
func TestStallSilentNode(t *testing.T) {
	for name, stall := range map[string]struct{ nodeTimeout, lasts time.Duration }{
		"many": {200 * time.Millisecond, 400 * time.Millisecond},
		"long": {50 * time.Millisecond, 600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const callers = 64
				var dropped atomic.Int64
				s := simulate(t, 3, redlock.WithNodeTimeout(stall.nodeTimeout), redlock.WithTTL(time.Minute), redlock.WithoutRenewal(),
					redlock.WithTrace(&redlock.Trace{CleanupDropped: func(redlock.CleanupDropped) { dropped.Add(1) }}))
				for _, n := range s.all() {
					n.Delay(time.Millisecond, time.Millisecond)
				}
				silent := s.Node(0)
				silent.Pause()
				k := startCrowd(t, s.client, callers)
				time.Sleep(stall.lasts)
				k.stop()
				k.wg.Wait()
				times, errs := k.take()
				for _, err := range errs {
					t.Error(err)
				}
				silent.Resume()
				time.Sleep(2 * stall.nodeTimeout)
				synctest.Wait()
				s.noLocks()
				if n := dropped.Load(); n > 0 {
					t.Errorf("%d releases were given up", n)
				}
				if n, bound := len(silent.Calls()), wakeBound; n > bound {
					t.Errorf("the node woke up to %d commands, want at most %d", n, bound)
				}
				t.Logf("%d attempts, %d commands for the silent node", len(times), len(silent.Calls()))
			})
		})
	}
}
