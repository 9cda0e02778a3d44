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
	reads   bool          // it reads arguments, as a hook that logs does

	alone, flights, most, underWay, highest atomic.Int64
}

func (*gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			defer g.pass(&g.alone, cmd)()
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "evalsha" { // a new connection's
			return next(ctx, cmds)
		}
		defer g.pass(&g.flights, cmds...)()
		if g.refusal != nil {
			return g.refusal
		}
		return next(ctx, cmds)
	}
}

func (g *gate) pass(count *atomic.Int64, cmds ...redis.Cmder) (passed func()) {
	count.Add(1)
	higher(&g.most, int64(len(cmds)))
	higher(&g.highest, g.underWay.Add(1))
	if g.shut != nil {
		<-g.shut
	}
	if g.reads {
		for _, cmd := range cmds {
			_ = cmd.Args()
		}
	}
	return func() { g.underWay.Add(-1) }
}

func higher(v *atomic.Int64, n int64) {
	for old := v.Load(); old < n && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// A lot is many callers of a client with one node, each with a lock of its own.
type lot struct {
	t        *testing.T
	client   *redlock.Client
	verdicts sync.Map // by name, of acquires; if there is a trace
}

// lotOf makes one whose go-redis client has a gate, if that is not nil: its own timeouts
// are short then, so that no command is hidden from it.
func lotOf(t *testing.T, addr string, g *gate, traced bool, change func(*redis.Options)) *lot {
	t.Helper()
	r := dial(t, addr, func(o *redis.Options) {
		if g != nil {
			o.ReadTimeout, o.WriteTimeout = time.Second, time.Second
		}
		if change != nil {
			change(o)
		}
	})
	if g != nil {
		r.AddHook(g)
	}
	l := &lot{t: t}
	opts := []redlock.Option{redlock.WithoutRenewal(), redlock.WithTTL(2 * time.Minute), redlock.WithNodeTimeout(30 * time.Second)}
	if traced {
		opts = append(opts, redlock.WithTrace(&redlock.Trace{NodeDone: func(d redlock.NodeDone) {
			if d.Op == "acquire" {
				l.verdicts.Store(d.Name, d.Verdict)
			}
		}}))
	}
	var err error
	l.client, err = redlock.New([]redlock.Node{redlock.NewRedisNode("n", r)}, opts...)
	noErr(t, err)
	t.Cleanup(func() {
		_ = l.client.Close()
		if commands, flights := l.client.UnderWay(); commands != 0 || flights != 0 {
			t.Errorf("%d commands and %d flights are still counted as under way", commands, flights)
		}
	})
	return l
}

// warm connects, teaches the server the scripts, and shows how long the way is.
func (l *lot) warm() *lot {
	l.t.Helper()
	for i := range 20 {
		mustUnlock(l.t, mustLock(l.t, mutexOf(l.t, l.client, fmt.Sprint("warm", i))))
	}
	return l
}

// An outcome is what came of one attempt.
type outcome struct {
	name  string
	lease *redlock.Lease
	err   error
	took  time.Duration
}

func nameOf(i int) string { return fmt.Sprint("m", i) }

// try makes attempts for count locks at once, each with the time that it is given.
func (l *lot) try(ctx func(i int) context.Context, from, count int, patience func(i int) time.Duration) []outcome {
	l.t.Helper()
	all := make([]outcome, count)
	ready := make(chan struct{}) // or the first would be away before the last are there
	var group sync.WaitGroup
	for i := range all {
		m := mutexOf(l.t, l.client, nameOf(from+i), redlock.WithNodeTimeout(patience(i)))
		group.Go(func() {
			<-ready
			start := time.Now()
			all[i].name = m.Name()
			all[i].lease, all[i].err = m.TryLock(ctx(i))
			all[i].took = time.Since(start)
		})
	}
	close(ready)
	group.Wait()
	return all
}

func (l *lot) tryAll(from, count int, patience time.Duration) []outcome {
	l.t.Helper()
	return l.try(nobodys, from, count, each(patience))
}

func nobodys(int) context.Context { return context.Background() }

func each(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// verdict waits for what the node said of an acquire.
func (l *lot) verdict(o outcome) redlock.Verdict {
	var v any
	eventually(10*time.Second, func() (ok bool) {
		v, ok = l.verdicts.Load(o.name)
		return ok
	})
	verdict, _ := v.(redlock.Verdict)
	return verdict
}

func granted(all []outcome) (n int) {
	for _, o := range all {
		if o.err == nil {
			n++
		}
	}
	return n
}

// arriving counts the acquires that reach a server, by a proxy.
func arriving(p *netfault.Proxy) *atomic.Int64 {
	n := new(atomic.Int64)
	p.Tap(func(_ int, dir netfault.Direction, b []byte) {
		if dir == netfault.ToServer && isAcquire(b) {
			n.Add(1)
		}
	})
	return n
}

// TestFlightFull: many callers need few trips at a time, which have bounds, and each
// command is sent once.
func TestFlightFull(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]time.Duration{"near": 0, "far": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redisproc.Start(t)
			p := netfault.New(t, s.Addr())
			g := new(gate)
			p.Delay(way, way)
			l := lotOf(t, p.Addr(), g, false, nil).warm()
			sent := arriving(p)
			const many = 1200
			all := l.tryAll(0, many, 30*time.Second)
			if n := granted(all); n != many {
				t.Errorf("%d of %d were granted, %v", n, many, all[0])
			}
			if n := sent.Load(); n != many {
				t.Errorf("the server was sent %d commands", n)
			}
			if most, at := g.most.Load(), g.highest.Load(); most > 128 || most < 16 || at > 28 {
				t.Errorf("up to %d commands traveled together, and up to %d times at once", most, at)
			}
			if trips := g.flights.Load(); trips > many/8 {
				t.Errorf("%d commands made %d trips", many, trips)
			}
			var group sync.WaitGroup
			for _, o := range all {
				group.Go(func() { mustUnlock(t, o.lease) })
			}
			group.Wait()
		})
	}
}

// TestFlightErrors: an error is that of one command, and of nobody else on board.
func TestFlightErrors(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	g := &gate{reads: true}
	l := lotOf(t, s.Addr(), g, true, nil).warm()
	const many = 300
	for i := range many {
		switch key := "lock:" + nameOf(i); i % 3 {
		case 0:
			ask(t, s, "RPUSH", key, "x")
		case 1:
			ask(t, s, "SET", key, "other", "PX", "60000")
		}
	}
	for i, o := range l.tryAll(0, many, 10*time.Second) {
		want := [...]redlock.Verdict{redlock.Forbidden, redlock.Taken, redlock.Granted}[i%3]
		if v := l.verdict(o); v != want || (o.err == nil) != (i%3 == 2) || errors.Is(o.err, redlock.ErrTaken) != (i%3 == 1) {
			t.Errorf("command %d: verdict %v, %v", i, v, o.err)
		}
	}
	if n := g.most.Load(); n < 8 {
		t.Errorf("only %d traveled together", n)
	}
}

// TestFlightLost: when a connection fails, all who were on it are unknown, and nobody
// is sent again, although the client has retries.
func TestFlightLost(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	l := lotOf(t, p.Addr(), new(gate), true, nil).warm()
	sent := arriving(p)
	p.DropReplyTo(isAcquire)
	const many = 300
	all := l.tryAll(0, many, 10*time.Second)
	for i, o := range all {
		if v := l.verdict(o); v != redlock.Unknown || o.err == nil {
			t.Errorf("command %d: verdict %v, %v", i, v, o.err)
		}
	}
	if n := sent.Load(); n > many {
		t.Errorf("%d commands were sent %d times", many, n)
	}
}

// TestFlightPartial: what was answered before the connection failed counts.
func TestFlightPartial(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	l := lotOf(t, p.Addr(), new(gate), true, nil).warm()
	p.HoldRequests(netfault.First(2, isAcquire), time.Second) // all others travel together
	p.CutReplyAfter(1500)
	verdicts := make(map[redlock.Verdict]int)
	for _, o := range l.tryAll(0, 130, 5*time.Second) {
		verdicts[l.verdict(o)]++
	}
	if g, u := verdicts[redlock.Granted], verdicts[redlock.Unknown]; g < 16 || u == 0 || g+u != 130 {
		t.Errorf("%d granted, %d unknown", g, u)
	}
}

// TestFlightHook: a hook that blocks, whether over a command that was sent or over one
// that was not, holds up none of those who travel with it.
func TestFlightHook(t *testing.T) {
	t.Parallel()
	for _, over := range []redlock.Verdict{redlock.Granted, redlock.Unsent} {
		t.Run(fmt.Sprint(over), func(t *testing.T) {
			t.Parallel()
			s := redisproc.Start(t)
			p := netfault.New(t, s.Addr())
			free := make(chan struct{})
			var blocked atomic.Int64
			c, err := redlock.New([]redlock.Node{redlock.NewRedisNode("n", dial(t, p.Addr(), nil))},
				redlock.WithoutRenewal(), redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(20*time.Second),
				redlock.WithTrace(&redlock.Trace{NodeDone: func(d redlock.NodeDone) {
					if d.Op == "acquire" && d.Name[0] == 'b' && d.Verdict == over {
						blocked.Add(1)
						<-free
					}
				}}))
			noErr(t, err)
			l := &lot{t: t, client: c}
			l.warm()
			patience := time.Millisecond
			if over == redlock.Granted { // too late: else it is the caller who hears of it
				p.Delay(50*time.Millisecond, 50*time.Millisecond)
				l.tryAll(1000, 300, 10*time.Second) // connects more
				patience = 60 * time.Millisecond
			}
			p.HoldRequests(netfault.First(2, isAcquire), 100*time.Millisecond) // the others gather
			var all, live sync.WaitGroup
			all.Go(func() { l.tryAll(0, 2, 10*time.Second) })
			time.Sleep(10 * time.Millisecond)
			for i := range 60 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					if l, err := mutexOf(t, c, fmt.Sprint("blocked", i)).TryLock(ctx); err == nil {
						_ = l.Unlock(context.Background())
					}
				})
				live.Go(func() {
					onTime(t, "TryLock", func() error {
						l, err := mutexOf(t, c, fmt.Sprint("live", i)).TryLock(context.Background())
						if err == nil {
							err = l.Unlock(context.Background())
						}
						return err
					})
				})
			}
			live.Wait()
			if blocked.Load() == 0 {
				t.Error("the hook was not asked to block")
			}
			close(free)
			all.Wait()
			noErr(t, c.Close())
		})
	}
}

// TestFlightNoScript: a server that has forgotten a script is told it by those who
// meet that, and nobody fails.
func TestFlightNoScript(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	l := lotOf(t, s.Addr(), nil, false, nil).warm()
	for i := range 3 {
		ask(t, s, "SCRIPT", "FLUSH")
		before := calls(t, s, "eval")
		if n := granted(l.tryAll(400*i, 200, 10*time.Second)); n != 200 {
			t.Fatalf("%d of 200 were granted", n)
		}
		if calls(t, s, "eval") == before {
			t.Error("the script was not needed")
		}
		before = calls(t, s, "eval")
		l.tryAll(400*i+200, 200, 10*time.Second)
		if now := calls(t, s, "eval"); now > before {
			t.Errorf("the script was sent %d times to a server that knows it", now-before)
		}
	}
}

// TestFlightLeave: those whose time is over before they are written, and those whose
// context has ended, return then, leave nothing behind, and are never written, although
// others who travel with them are.
func TestFlightLeave(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	lotOf(t, s.Addr(), nil, false, nil).warm() // or no command would be carried out when it is written first
	g := &gate{shut: make(chan struct{})}
	l := lotOf(t, s.Addr(), g, true, nil)
	const many, short, long = 900, 2200 * time.Millisecond, 4000 * time.Millisecond
	const opens = (short + long) / 2
	cancelled, cancel := context.WithCancel(context.Background())
	time.AfterFunc(short/2, cancel)
	time.AfterFunc(opens, func() { close(g.shut) })
	all := l.try(func(i int) context.Context {
		if i%3 == 1 {
			return cancelled
		}
		return context.Background()
	}, 0, many, func(i int) time.Duration {
		if i%3 == 0 {
			return short
		}
		return long
	})
	alone := 0
	for i, o := range all {
		switch v := l.verdict(o); {
		case i%3 == 2 && v == redlock.Granted && o.err == nil:
		case i%3 != 2 && v == redlock.Unsent && o.took < opens:
		default:
			alone++ // the first two, which have nobody on board who waits longer
			if alone > 2 {
				t.Errorf("command %d: verdict %v, %v after %v", i, v, o.err, o.took)
			}
		}
	}
	if n := g.most.Load(); n < 32 {
		t.Errorf("only %d traveled together", n)
	}
	if n := len(lockKeys(t, s)); n != granted(all) {
		t.Errorf("%d locks were set, %d granted", n, granted(all))
	}
	if n := granted(l.tryAll(many, 100, 10*time.Second)); n != 100 {
		t.Errorf("after that %d of 100 were granted", n)
	}
}

// TestFlightNext: a command that gets no answer does not keep back those who come
// after it.
func TestFlightNext(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	l := lotOf(t, p.Addr(), nil, false, nil).warm()
	p.HoldRequests(netfault.First(2, isAcquire), time.Minute)
	var first sync.WaitGroup
	first.Go(func() { l.tryAll(500, 2, 3*time.Second) })
	time.Sleep(50 * time.Millisecond)
	for i, o := range l.tryAll(0, 20, 2500*time.Millisecond) {
		if o.err != nil || o.took > quick {
			t.Errorf("command %d: %v after %v", i, o.err, o.took)
		}
	}
	first.Wait()
}

// TestFlightTimes: a command with little time does not wait for the answers of those
// with more, nor cut them short.
func TestFlightTimes(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	l := lotOf(t, p.Addr(), nil, true, nil).warm()
	l.tryAll(1000, 500, 10*time.Second) // connects more
	const short, long = 150 * time.Millisecond, 4 * time.Second
	p.Delay(short, short) // twice that is an answer for the patient
	all := l.try(nobodys, 0, 100, func(i int) time.Duration {
		if i%3 == 0 {
			return short
		}
		return long
	})
	for i, o := range all {
		if i%3 == 0 && (o.err == nil || o.took > long/2) || i%3 != 0 && o.err != nil {
			t.Errorf("command %d: %v after %v", i, o.err, o.took)
		}
	}
}

// TestFlightFar: on a long way flights follow each other closely, and on a short one they
// do not.
func TestFlightFar(t *testing.T) {
	t.Parallel()
	const way = 50 * time.Millisecond
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	g := new(gate)
	l := lotOf(t, p.Addr(), g, false, nil)
	try := func(from int) {
		g.highest.Store(0)
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				time.Sleep(time.Duration(i) * 2 * way / 100)
				l.tryAll(from+i, 1, 10*time.Second)
			})
		}
		group.Wait()
	}
	p.Delay(way, way)
	for i := range 3 { // the first connects
		l.tryAll(i, 1, 10*time.Second)
	}
	try(100)
	if n := g.highest.Load(); n < 16 {
		t.Errorf("%d flights at once on a long way", n)
	}
	p.Delay(0, 0)
	l.warm()
	p.HoldRequests(netfault.First(2, isAcquire), way) // once
	try(300)
	if n := g.highest.Load(); n > 12 {
		t.Errorf("%d flights at once on a short way", n)
	}
}

// TestFlightRefused: a hook that lets nothing pass has sent nothing.
func TestFlightRefused(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	g := &gate{refusal: errors.New("not today")}
	l := lotOf(t, s.Addr(), g, true, nil).warm()
	refused := 0
	for i, o := range l.tryAll(0, 100, 10*time.Second) {
		switch v := l.verdict(o); {
		case v == redlock.Unsent && errors.Is(o.err, g.refusal):
			refused++
		case v != redlock.Granted:
			t.Errorf("command %d: verdict %v, %v", i, v, o.err)
		}
	}
	if refused < 50 {
		t.Errorf("%d were refused", refused)
	}
}

// TestFlightStuck: commands on connections that have died do not keep back those who
// come when the node is there again, with as much time or less.
func TestFlightStuck(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	l := lotOf(t, p.Addr(), nil, false, func(o *redis.Options) { o.PoolSize = 200 }).warm()
	p.Mute(true)
	const long = 4 * time.Second
	var stuck sync.WaitGroup
	for i := range 40 {
		stuck.Go(func() {
			time.Sleep(time.Duration(i) * 10 * time.Millisecond) // on a flight of its own
			l.tryAll(500+i, 1, long)
		})
	}
	time.Sleep(600 * time.Millisecond)
	if _, flights := l.client.UnderWay(); flights > 30 {
		t.Errorf("%d flights are under way to a node that does not answer", flights)
	}
	p.Mute(false) // new connections work
	for i, patience := range []time.Duration{long / 8, long / 8, long, long} {
		o := l.tryAll(i, 1, patience)[0]
		if o.err != nil || o.took > long/2 {
			t.Errorf("command %d: %v after %v", i, o.err, o.took)
		}
	}
	p.Refuse(true)
	stuck.Wait()
	p.Refuse(false)
}

// TestFlightPlaces: while all places are taken nothing but their being given back lets
// others go, and no timer runs for that.
func TestFlightPlaces(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	p := netfault.New(t, s.Addr())
	l := lotOf(t, p.Addr(), nil, false, nil).warm()
	p.Mute(true)
	const patience = 2 * time.Second
	var stuck sync.WaitGroup
	stuck.Go(func() { l.tryAll(0, 600, patience) })
	if !eventually(quick, func() bool { n, _ := l.client.UnderWay(); return n == 256 }) {
		t.Error("the places are not taken")
	}
	time.Sleep(50 * time.Millisecond) // a timer may have been set before
	for range 20 {
		time.Sleep(time.Millisecond)
		if l.client.Armed() {
			t.Fatal("a timer runs")
		}
	}
	stuck.Wait()
	p.Mute(false)
	if n := granted(l.tryAll(1000, 100, 10*time.Second)); n != 100 {
		t.Errorf("after that %d of 100 were granted", n)
	}
}

// TestFlightReason: where there is no connection, all on board are told why.
func TestFlightReason(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t)
	for _, g := range []*gate{{}, {reads: true}} {
		l := lotOf(t, s.Addr(), g, true, func(o *redis.Options) { o.Username, o.Password = "nobody", "wrong" })
		for _, o := range l.tryAll(0, 60, 10*time.Second) {
			if v := l.verdict(o); v != redlock.Forbidden {
				t.Errorf("hook that reads %v: verdict %v, %v", g.reads, v, o.err)
			}
		}
	}
}
