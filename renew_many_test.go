//go:build unix

// Ten thousand leases held by one process on real servers.

package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// A crowdOfLeases is many leases of one client.
type crowdOfLeases struct {
	client *redlock.Client
	leases []*redlock.Lease

	mu     sync.Mutex
	behind []time.Duration
	errs   []error
	lost   atomic.Int64
}

// holdMany takes n leases, in parallel.
func holdMany(t testing.TB, f *fleet, n int, ttl time.Duration) *crowdOfLeases {
	t.Helper()
	h := &crowdOfLeases{leases: make([]*redlock.Lease, n)}
	h.client = f.open(redlock.WithTTL(ttl), redlock.WithTrace(&redlock.Trace{
		Renewal: func(e redlock.Renewal) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.behind = append(h.behind, e.Behind)
			if e.Err != nil {
				h.errs = append(h.errs, e.Err)
			}
		},
		Lost: func(redlock.Lost) { h.lost.Add(1) },
	}))
	warm(t, h.client)
	start := time.Now()
	h.all(t, func(i int) error {
		// Over a period, as a program that has run for a while holds them.
		time.Sleep(time.Until(start.Add(ttl / 3 * time.Duration(i) / time.Duration(n))))
		m, err := h.client.NewMutex(fmt.Sprint("lease-", i))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		h.leases[i], err = m.Lock(ctx)
		return err
	})
	return h
}

// all calls f for each index, some at a time.
func (h *crowdOfLeases) all(t testing.TB, f func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(h.leases); i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// measure watches the process for a while: the goroutines at most and mostly.
func measure(d time.Duration) (most, typical int) {
	var seen []int
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(3 * time.Millisecond) {
		seen = append(seen, runtime.NumGoroutine())
	}
	slices.Sort(seen)
	return seen[len(seen)-1], seen[len(seen)/2]
}

// stalls measures for d how late a timer is at most.
func stalls(d time.Duration) <-chan time.Duration {
	worst := make(chan time.Duration, 1)
	go func() {
		const pause = 5 * time.Millisecond
		var most time.Duration
		for end := time.Now().Add(d); time.Now().Before(end); {
			start := time.Now()
			time.Sleep(pause)
			most = max(most, time.Since(start)-pause)
		}
		worst <- most
	}()
	return worst
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRenewMany: renewals come when they are planned, and the goroutines do not
// grow with the leases.
func TestRenewMany(t *testing.T) {
	if testing.Short() {
		t.Skip("holds 10,000 leases for 12 s")
	}
	const ttl = 10 * time.Second
	f := startFleet(t, 5)

	few := holdMany(t, f, 100, ttl)
	_, fewTypical := measure(2 * time.Second)
	few.all(t, func(i int) error { return few.leases[i].Unlock(context.Background()) })
	noErr(t, few.client.Close())

	const n = 10_000
	before := heapInUse()
	start := time.Now()
	many := holdMany(t, f, n, ttl)
	machine := stalls(12 * time.Second)
	t.Logf("took %d leases in %v", n, time.Since(start).Round(time.Millisecond))
	perLease := (float64(heapInUse()) - float64(before)) / n

	goroutines := runtime.NumGoroutine()
	used := cpu()
	most, typical := measure(12 * time.Second)
	used = cpu() - used
	many.mu.Lock()
	behind, errs := slices.Clone(many.behind), slices.Clone(many.errs)
	many.mu.Unlock()
	if len(behind) < 3*n {
		t.Errorf("%d renewals of %d leases in 12 s, want one per lease every 3.3 s", len(behind), n)
	}
	slices.Sort(behind)
	worst := behind[len(behind)-1]
	t.Logf("%d renewals: late by %v at the median, %v at p99, %v at most", len(behind), behind[len(behind)/2], behind[len(behind)*99/100], worst)
	t.Logf("goroutines: %d at the start, %d mostly, %d at most; with 100 leases %d mostly", goroutines, typical, most, fewTypical)
	t.Logf("per lease: %.0f bytes; %.1f µs of processor time per renewal, tests included", perLease, float64(used.Microseconds())/float64(len(behind)))
	// How late any timer was is the machine's share, which other work has too.
	stall := <-machine
	t.Logf("a timer of this process was late by up to %v", stall)
	if worst > ttl/10+stall {
		t.Errorf("a renewal was %v late", worst)
	}
	// The calls under way are bounded by the client: 256 per node, and the driver's
	// own. What is there between them does not depend on the leases.
	if most > 5*256+500 {
		t.Errorf("%d goroutines", most)
	}
	if typical > fewTypical+200 {
		t.Errorf("%d goroutines mostly, with 100 leases %d", typical, fewTypical)
	}
	if len(errs) > 0 { // a server that gets no processor does not answer in time
		t.Logf("%d renewals failed, one with %v", len(errs), errs[0])
	}
	if n := many.lost.Load(); n > 0 {
		t.Errorf("%d leases were lost", n)
	}
	for _, l := range many.leases {
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
	}
	noErr(t, many.client.Close())
	for i, s := range f.servers {
		if keys := lockKeys(t, s); len(keys) > 0 {
			t.Errorf("node %d has %d keys after Close", i, len(keys))
		}
	}
}
