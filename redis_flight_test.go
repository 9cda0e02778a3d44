// Commands of many callers travel to a node together, and each for itself.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A gate is a hook that holds up, and looks at, what passes.
type gate struct {
	shut    chan struct{} // closed to let pass; nil for always open
	refusal error         // of pipelines, instead of sending them

	alone, flights, most, underWay, highest atomic.Int64
}

func (*gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			defer g.pass(&g.alone, 1)()
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "evalsha" { // a new connection's
			return next(ctx, cmds)
		}
		defer g.pass(&g.flights, len(cmds))()
		if g.refusal != nil {
			return g.refusal
		}
		return next(ctx, cmds)
	}
}

func (g *gate) pass(count *atomic.Int64, size int) (passed func()) {
	count.Add(1)
	higher(&g.most, int64(size))
	higher(&g.highest, g.underWay.Add(1))
	if g.shut != nil {
		<-g.shut
	}
	return func() { g.underWay.Add(-1) }
}

func higher(v *atomic.Int64, n int64) {
	for old := v.Load(); old < n && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// gated makes a node whose client has a gate, and hides no command from it: its own
// timeouts are shorter than those of commands that have more than a second.
func gated(t *testing.T, addr string, g *gate) redlock.Node {
	t.Helper()
	c := dial(t, addr, func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = time.Second, time.Second })
	c.AddHook(g)
	return redlock.NewRedisNode("n", c)
}

func claimOf(i int) *redlock.Claim {
	return &redlock.Claim{
		Lock: fmt.Sprintf("lock:%d", i), Fence: fmt.Sprintf("redlock:fence:{lock:%d}", i), Tombstone: fmt.Sprintf("redlock:tomb:{lock:%d}", i),
		Value: fmt.Sprint("v", i), TTL: time.Minute, Retention: time.Hour, ClockBound: 10 * time.Second,
	}
}

// An outcome is what came of one command.
type outcome struct {
	redlock.Reply
	err  error
	took time.Duration
}

// acquireAll acquires n locks at once, each with the time that it is given.
func acquireAll(t *testing.T, n redlock.Node, count int, patience func(i int) time.Duration) []outcome {
	t.Helper()
	all := make([]outcome, count)
	ready := make(chan struct{}) // or the first would be away before the last are there
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			<-ready
			ctx, cancel := context.WithTimeout(context.Background(), patience(i))
			defer cancel()
			start := time.Now()
			all[i].Reply, all[i].err = n.Acquire(ctx, claimOf(i))
			all[i].took = time.Since(start)
		})
	}
	close(ready)
	group.Wait()
	return all
}

func each(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// count returns how many have the verdict.
func count(all []outcome, v redlock.Verdict) (n int) {
	for _, o := range all {
		if o.Verdict == v {
			n++
		}
	}
	return n
}

// connected makes connections of the node, and teaches the server its scripts.
func connected(t *testing.T, n redlock.Node) {
	t.Helper()
	for i := range 40 {
		c := claimOf(1000 + i)
		c.TTL = 10 * time.Millisecond
		_, err := n.Acquire(t.Context(), c)
		noErr(t, err)
	}
}

// TestFlightFull: many callers need few trips at a time, which have bounds, and each
// command is sent once.
func TestFlightFull(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	g := new(gate)
	n := gated(t, p.Addr(), g)
	connected(t, n)
	before := scripts(t, s)
	p.Delay(20*time.Millisecond, 20*time.Millisecond)
	const many = 2000
	all := acquireAll(t, n, many, each(30*time.Second))
	if got := count(all, redlock.Granted); got != many {
		t.Errorf("%d of %d were granted, %v", got, many, all[0])
	}
	if sent := scripts(t, s) - before; sent != many {
		t.Errorf("the server was sent %d commands", sent)
	}
	if most, at := g.most.Load(), g.highest.Load(); most > 64 || most < 32 || at > 28 {
		t.Errorf("up to %d commands traveled together, and up to %d times at once", most, at)
	}
	if trips := g.flights.Load(); trips > many/8 {
		t.Errorf("%d commands made %d trips", many, trips)
	}
	if q := redlock.Queued(n); q > 0 {
		t.Errorf("%d wait for nothing", q)
	}
}

// TestFlightErrors: an error is that of one command, and of nobody else on board.
func TestFlightErrors(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	n := gated(t, p.Addr(), new(gate))
	connected(t, n)
	const many = 300
	for i := range many {
		switch i % 3 {
		case 0:
			ask(t, s, "RPUSH", claimOf(i).Lock, "x")
		case 1:
			ask(t, s, "SET", claimOf(i).Lock, "other", "PX", "60000")
		}
	}
	p.Delay(5*time.Millisecond, 5*time.Millisecond)
	for i, o := range acquireAll(t, n, many, each(10*time.Second)) {
		want := [...]redlock.Verdict{redlock.Forbidden, redlock.Taken, redlock.Granted}[i%3]
		if o.Verdict != want || (o.err != nil) != (i%3 == 0) {
			t.Errorf("command %d: verdict %v, %v", i, o.Verdict, o.err)
		}
	}
}

// TestFlightLost: when a connection fails, all who were on it are unknown, and nobody
// is sent again, although the client has retries.
func TestFlightLost(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	n := gated(t, p.Addr(), new(gate))
	connected(t, n)
	before := scripts(t, s)
	p.Delay(5*time.Millisecond, 5*time.Millisecond)
	p.DropReplyTo(isAcquire)
	const many = 300
	all := acquireAll(t, n, many, each(10*time.Second))
	if got := count(all, redlock.Unknown); got != many {
		t.Errorf("%d of %d are unknown: %v", got, many, all[0])
	}
	time.Sleep(100 * time.Millisecond)
	if sent := scripts(t, s) - before; sent > many {
		t.Errorf("%d commands were executed %d times", many, sent)
	}
}

// TestFlightNoScript: a server that has forgotten a script is told it by those who
// meet that, and nobody fails.
func TestFlightNoScript(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	n := gated(t, s.Addr(), new(gate))
	for range 3 {
		ask(t, s, "SCRIPT", "FLUSH")
		before := calls(t, s, "eval")
		all := acquireAll(t, n, 200, each(10*time.Second))
		if got := count(all, redlock.Granted); got != 200 {
			t.Fatalf("%d of 200 were granted", got)
		}
		if calls(t, s, "eval") == before {
			t.Error("the script was not needed")
		}
		before = calls(t, s, "eval")
		acquireAll(t, n, 200, each(10*time.Second))
		if now := calls(t, s, "eval"); now > before {
			t.Errorf("the script was sent %d times to a server that knows it", now-before)
		}
	}
}

// TestFlightLeave: those whose time is over before they are written return then, as
// not sent, leave nothing behind, and are never written, although others who travel with
// them are.
func TestFlightLeave(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	g := &gate{shut: make(chan struct{})}
	n := gated(t, s.Addr(), g)
	const many, patience = 3000, 1500 * time.Millisecond
	held := make(chan outcome, 2)
	for i := range 2 {
		go func() {
			var o outcome
			o.Reply, o.err = n.Acquire(context.Background(), claimOf(many+i))
			held <- o
		}()
	}
	if !eventually(quick, func() bool { return g.alone.Load() == 2 }) {
		t.Fatal("the first commands do not go")
	}
	time.AfterFunc(patience+quick, func() { close(g.shut) })
	var patient, left atomic.Int64
	all := acquireAll(t, n, many, func(i int) time.Duration {
		if i%10 == 0 { // some are on every flight
			patient.Add(1)
			return time.Minute
		}
		return patience
	})
	for i, o := range all {
		switch {
		case i%10 == 0 && o.Verdict == redlock.Granted:
		case i%10 != 0 && o.Verdict == redlock.Unsent && errors.Is(o.err, context.DeadlineExceeded) && o.took < patience+quick:
			left.Add(1)
		default:
			t.Fatalf("command %d: verdict %v, %v after %v", i, o.Verdict, o.err, o.took)
		}
	}
	for range 2 {
		if o := <-held; o.Verdict != redlock.Granted {
			t.Errorf("one of the first: verdict %v, %v", o.Verdict, o.err)
		}
	}
	if q := redlock.Queued(n); q > 0 {
		t.Errorf("%d still wait", q)
	}
	if extra := len(lockKeys(t, s)) - 2 - int(patient.Load()); extra != 0 {
		t.Errorf("%d locks were set by the %d who had left", extra, left.Load())
	}
	if got := count(acquireAll(t, n, 100, each(10*time.Second)), redlock.Granted); got != 100 {
		t.Errorf("after that %d of 100 were granted", got)
	}
}
