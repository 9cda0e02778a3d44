// One container is killed and started again, over and over, while clients compete.

package integration_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestDockerRestarts: nobody is inside beside somebody else, no lease is lost, no
// key is left, and goroutines do not pile up. The node keeps what it answered:
// contenders split the votes, so that a lock may rest on a bare quorum.
func TestDockerRestarts(t *testing.T) {
	const nodeTimeout = time.Second
	length := time.Minute
	if testing.Short() {
		length = 5 * time.Second
	}
	// Two clients that split four votes wait for the fifth node, and on a busy machine
	// there may be hardly a turn in a few seconds: so it goes on until there were some.
	const enough, atMost = 20, 3 * time.Minute
	f := startFleet(t, always, none, none, none, none)
	var lost atomic.Int64
	trace := redlock.WithTrace(&redlock.Trace{Lost: func(redlock.Lost) { lost.Add(1) }})
	// No key of the contended lock goes by itself before the test ends.
	clients := []*redlock.Client{
		f.open(redlock.WithTTL(2*time.Minute), redlock.WithNodeTimeout(nodeTimeout), trace),
		f.open(redlock.WithTTL(2*time.Minute), redlock.WithNodeTimeout(nodeTimeout), trace),
	}
	holder := f.open(redlock.WithTTL(2*time.Second), trace)
	for _, c := range append(clients, holder) {
		f.warm(c)
	}
	long := f.lock(mutexOf(t, holder, "long"))
	f.settled(long, 5)

	idle := ours()
	ctx, stop := context.WithTimeout(t.Context(), atMost)
	defer stop()
	var inside, turns atomic.Int64
	var contenders sync.WaitGroup
	for i := range 6 {
		m := mutexOf(t, clients[i%2], "a")
		contenders.Go(func() {
			for {
				l, err := m.Lock(ctx)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the lock")
				}
				time.Sleep(rand.N(5 * time.Millisecond))
				inside.Add(-1)
				if err := l.Unlock(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
				turns.Add(1)
			}
		})
	}
	var restarts, most, connections int
	start := time.Now()
	for ctx.Err() == nil && (time.Since(start) < length || turns.Load() < enough) {
		f.nodes[0].Kill()
		time.Sleep(rand.N(300 * time.Millisecond))
		f.nodes[0].Restart()
		time.Sleep(rand.N(300 * time.Millisecond))
		restarts++
		most = max(most, ours())
		for i := 1; i < len(f.nodes); i++ {
			connections = max(connections, f.connections(i))
		}
	}
	stop()
	contenders.Wait()
	took := time.Since(start)
	f.free("a", 2*nodeTimeout+quick)
	// Dials to the node while it was down have five seconds, and what waits for them
	// less.
	if !eventually(10*time.Second, func() bool { return ours() <= idle+5 }) {
		t.Errorf("%d goroutines after all, %d before", ours(), idle)
	}
	if err := long.Err(); err != nil {
		t.Errorf("a lease that was held all the time: %v", err)
	}
	f.settled(long, 5)
	f.unlock(long)
	f.free("long", quick)
	if n := lost.Load(); n > 0 {
		t.Errorf("%d leases were lost", n)
	}
	t.Logf("%d restarts in %v; %d turns; %d goroutines before, at most %d meanwhile, %d in the end; at most %d connections to another node",
		restarts, took.Round(time.Second), turns.Load(), idle, most, ours(), connections)
	if restarts < 3 || turns.Load() < enough {
		t.Errorf("that was no test: %d restarts and %d turns in %v", restarts, turns.Load(), took)
	}
	// Two clients compete, and each has at most so many commands under way to a node,
	// besides the driver's dials.
	if most > idle+2*(256+100) {
		t.Errorf("goroutines pile up: %d before, then %d", idle, most)
	}
	// A pool of the driver's has ten connections for each processor, and one more for
	// pipelines has ten.
	if bound := len(clients)*2*10*runtime.GOMAXPROCS(0) + 10; connections > bound {
		t.Errorf("%d connections to a node that was up all the time, want at most %d", connections, bound)
	}
	for _, c := range append(clients, holder) {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if !eventually(5*time.Second, func() bool { return ours() == 0 }) {
		t.Errorf("%d goroutines after Close", ours())
	}
}

// connections returns how many node i has.
func (f *fleet) connections(i int) int {
	f.Helper()
	info, err := f.eyes[i].Info(f.Context(), "clients").Result()
	_, rest, _ := strings.Cut(info, "connected_clients:")
	digits, _, _ := strings.Cut(rest, "\r\n")
	n, e := strconv.Atoi(digits)
	if err != nil || e != nil {
		f.Fatalf("node %d tells of no connections: %v, %v", i, err, e)
	}
	return n
}
