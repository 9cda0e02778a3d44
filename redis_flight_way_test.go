// Flights do not wait for each other, nor for those who have left.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/quorumlock/redlock/internal/slot"
)

// TestFlightNext: a command that gets no answer does not keep back those who come
// after it.
func TestFlightNext(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	n := redlock.NewRedisNode("n", dial(t, p.Addr(), nil))
	connected(t, n)
	p.HoldRequests(netfault.First(2, isAcquire), time.Minute)
	var first sync.WaitGroup
	for i := range 2 {
		first.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_, _ = n.Acquire(ctx, claimOf(500+i))
		})
	}
	time.Sleep(50 * time.Millisecond)
	for i, o := range acquireAll(t, n, 20, each(2500*time.Millisecond)) {
		if o.Verdict != redlock.Granted || o.took > quick {
			t.Errorf("command %d: verdict %v, %v after %v", i, o.Verdict, o.err, o.took)
		}
	}
	p.Refuse(true)
	first.Wait()
}

// TestFlightClasses: a command with little time does not wait for the answers of those
// with more, nor cut them short.
func TestFlightClasses(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	n := redlock.NewRedisNode("n", dial(t, p.Addr(), nil))
	connected(t, n)
	p.Delay(5*time.Millisecond, 5*time.Millisecond)
	acquireAll(t, n, 500, each(10*time.Second)) // connects more
	p.Mute(true)
	const short, long = 150 * time.Millisecond, 4 * time.Second
	all := acquireAll(t, n, 100, func(i int) time.Duration {
		if i%3 == 0 {
			return short
		}
		return long
	})
	for i, o := range all {
		if o.err == nil {
			t.Errorf("command %d: %v", i, o)
		}
		if i%3 == 0 && o.took > long/2 || i%3 != 0 && o.took < long/2 {
			t.Errorf("command %d took %v: %v", i, o.took, o.err)
		}
	}
}

// TestFlightCancel: those who leave take nobody with them.
func TestFlightCancel(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	g := &gate{shut: make(chan struct{})}
	n := gated(t, s.Addr(), g)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the last deadline
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		for _, o := range acquireAll(t, n, 2, each(30*time.Second)) {
			if o.Verdict != redlock.Granted {
				t.Errorf("one of the first: verdict %v, %v", o.Verdict, o.err)
			}
		}
	})
	if !eventually(quick, func() bool { return g.alone.Load() == 2 }) {
		t.Fatal("the first commands do not go")
	}
	const many = 500
	var all [many]redlock.Reply
	for i := range all {
		group.Go(func() {
			mine, done := context.WithTimeout(context.Background(), 30*time.Second)
			defer done()
			if i%10 == 0 {
				mine = ctx
			}
			all[i], _ = n.Acquire(mine, claimOf(i+2))
		})
	}
	if !eventually(quick, func() bool { return g.most.Load() == 64 && redlock.Queued(n) == 0 }) {
		t.Error("they do not take off")
	}
	cancel()
	time.Sleep(20 * time.Millisecond)
	close(g.shut)
	group.Wait()
	for i, r := range all {
		if want := redlock.Granted; i%10 != 0 && r.Verdict != want || i%10 == 0 && r.Verdict != redlock.Unsent {
			t.Errorf("command %d: verdict %v", i, r.Verdict)
		}
	}
}

// TestFlightRefused: a hook that lets nothing pass has sent nothing.
func TestFlightRefused(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	g := &gate{refusal: errors.New("not today")}
	n := gated(t, p.Addr(), g)
	connected(t, n)
	p.Delay(20*time.Millisecond, 20*time.Millisecond)
	all := acquireAll(t, n, 100, each(10*time.Second))
	refused := 0
	for i, o := range all {
		if o.Verdict == redlock.Unsent && errors.Is(o.err, g.refusal) {
			refused++
		} else if o.Verdict != redlock.Granted {
			t.Errorf("command %d: verdict %v, %v", i, o.Verdict, o.err)
		}
	}
	if refused < 50 {
		t.Errorf("%d were refused", refused)
	}
}

// TestFlightCluster: commands for one server of a Cluster do not wait for another one.
func TestFlightCluster(t *testing.T) {
	t.Parallel()
	good, bad := redisproc.Start(t), redisproc.Start(t)
	p := netfault.New(t, bad.Addr())
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{good.Addr()},
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{
				{Start: 0, End: slot.Count/2 - 1, Nodes: []redis.ClusterNode{{Addr: good.Addr()}}},
				{Start: slot.Count / 2, End: slot.Count - 1, Nodes: []redis.ClusterNode{{Addr: p.Addr()}}},
			}, nil
		},
	})
	t.Cleanup(func() { c.Close() })
	n := redlock.NewRedisNode("n", c)
	connected(t, n)
	p.Mute(true)
	const patience = 2 * time.Second
	all := acquireAll(t, n, 200, each(patience))
	p.Refuse(true)
	for i, o := range all {
		if int(slot.Of(claimOf(i).Lock)) < slot.Count/2 && (o.Verdict != redlock.Granted || o.took > patience*3/4) {
			t.Errorf("command %d: verdict %v, %v after %v", i, o.Verdict, o.err, o.took)
		}
	}
}

// TestFlightStuck: commands on connections that have died do not keep back those who
// come when the node is there again, with as much time or less.
func TestFlightStuck(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	n := redlock.NewRedisNode("n", dial(t, p.Addr(), func(o *redis.Options) { o.PoolSize = 200 }))
	connected(t, n)
	p.Mute(true)
	const long = 4 * time.Second
	var stuck sync.WaitGroup
	for i := range 40 {
		stuck.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond) // on a flight of its own
			ctx, cancel := context.WithTimeout(context.Background(), long)
			defer cancel()
			_, _ = n.Acquire(ctx, claimOf(500+i))
		})
	}
	time.Sleep(300 * time.Millisecond)
	p.Mute(false) // new connections work
	for i, patience := range []time.Duration{long / 16, long / 16, long, long} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		start := time.Now()
		r, err := n.Acquire(ctx, claimOf(i))
		if d := time.Since(start); r.Verdict != redlock.Granted || d > long/2 {
			t.Errorf("command %d: verdict %v, %v after %v", i, r.Verdict, err, d)
		}
		cancel()
	}
	p.Refuse(true)
	stuck.Wait()
}

// A reader is a hook that looks at arguments, as one that logs does.
type reader struct{ gate }

func (r *reader) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = cmd.Args()
		return next(ctx, cmd)
	}
}

func (r *reader) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = cmd.Args()
		}
		return next(ctx, cmds)
	}
}

// TestFlightReason: where there is no connection, all on board are told why.
func TestFlightReason(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	for _, hook := range []redis.Hook{new(gate), new(reader)} {
		c := dial(t, s.Addr(), func(o *redis.Options) {
			o.Username, o.Password, o.ReadTimeout, o.WriteTimeout = "nobody", "wrong", time.Second, time.Second
		})
		c.AddHook(hook)
		all := acquireAll(t, redlock.NewRedisNode("n", c), 60, each(10*time.Second))
		if got := count(all, redlock.Forbidden); got != 60 {
			t.Errorf("%T: %d of 60 are forbidden: %v", hook, got, all)
		}
	}
}

// TestFlightRedirected: a Cluster client that is sent elsewhere, and loses the
// connection there, reports no more than the redirection. The command may have been
// executed.
func TestFlightRedirected(t *testing.T) {
	t.Parallel()
	there := startFake(t, hangUp)
	for _, kind := range []string{"MOVED", "ASK"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			here := startFake(t, fmt.Sprintf("-%s 1 %s\r\n", kind, there.addr()))
			c := redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{here.addr()},
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: here.addr()}}}}, nil
				},
			})
			t.Cleanup(func() { c.Close() })
			n := redlock.NewRedisNode("n", c)
			all := acquireAll(t, n, 100, each(5*time.Second))
			for i, o := range all {
				if o.Verdict != redlock.Unknown || o.err == nil {
					t.Errorf("command %d: verdict %v, %v", i, o.Verdict, o.err)
				}
			}
			if there.acquires.Load() == 0 {
				t.Error("nobody was sent elsewhere")
			}
		})
	}
}

// TestFlightMoved: redirections are followed, by a flight as by one.
func TestFlightMoved(t *testing.T) {
	t.Parallel()
	there := startFake(t, "$5\r\n1 0 7\r\n")
	for _, kind := range []string{"MOVED", "ASK"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			here := startFake(t, fmt.Sprintf("-%s 1 %s\r\n", kind, there.addr()))
			c := redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{here.addr()},
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: here.addr()}}}}, nil
				},
			})
			t.Cleanup(func() { c.Close() })
			all := acquireAll(t, redlock.NewRedisNode("n", c), 100, each(5*time.Second))
			if got := count(all, redlock.Granted); got != 100 {
				t.Errorf("%d of 100 were granted: %v", got, all[0])
			}
		})
	}
}
