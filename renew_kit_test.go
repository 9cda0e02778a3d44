// What the tests of renewal share: clients whose ways to the same nodes fail
// one by one, and a record of when what was renewed.

package redlock_test

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A fault is what is wrong with a line.
type fault int

const (
	lineIntact  fault = iota
	lineHanging       // nothing gets through, either way
	lineMute          // commands get through, replies are lost
	lineRefused       // connections are refused, and those that exist are cut
	lineBroken        // commands get through, then the connection is cut
)

func (f fault) String() string {
	return [...]string{"intact", "hanging", "mute", "refused", "broken"}[f]
}

// A line is one client's way to a node. The faults of a redlocktest.Node meet
// all its clients, those of a line only this one.
type line struct {
	*redlocktest.Node
	there, back time.Duration // how long a command and a reply travel

	mu    sync.Mutex
	fault fault
}

func (l *line) set(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

func (l *line) get() fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

func (l *line) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	return l.send(ctx, func(ctx context.Context) (redlock.Reply, error) { return l.Node.Acquire(ctx, c) })
}

func (l *line) Extend(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	return l.send(ctx, func(ctx context.Context) (redlock.Reply, error) { return l.Node.Extend(ctx, c) })
}

func (l *line) Release(ctx context.Context, c *redlock.Claim, bury bool) (redlock.Reply, error) {
	return l.send(ctx, func(ctx context.Context) (redlock.Reply, error) { return l.Node.Release(ctx, c, bury) })
}

// send lets a command travel, and goes on doing so when its caller has left. A
// fault meets what is under way when it begins.
func (l *line) send(ctx context.Context, execute func(context.Context) (redlock.Reply, error)) (redlock.Reply, error) {
	if l.get() == lineRefused {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		return redlock.Reply{Verdict: redlock.Unsent}, err
	}
	type answer struct {
		reply redlock.Reply
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		time.Sleep(l.there)
		switch l.get() {
		case lineHanging:
			return
		case lineRefused:
			answers <- answer{err: io.EOF}
			return
		}
		var a answer
		a.reply, a.err = execute(context.WithoutCancel(ctx))
		time.Sleep(l.back)
		switch l.get() {
		case lineHanging, lineMute:
			return
		case lineRefused, lineBroken:
			a = answer{err: io.EOF}
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-ctx.Done():
		return redlock.Reply{}, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
}

// A party is a client with lines of its own.
type party struct {
	t      testing.TB
	client *redlock.Client
	lines  []*line
}

// join makes a party. It must Close without a complaint at the end of the test,
// with its lines intact.
func join(t testing.TB, c *redlocktest.Cluster, there, back time.Duration, opts ...redlock.Option) *party {
	t.Helper()
	p := &party{t: t}
	nodes := make([]redlock.Node, c.Len())
	for i := range nodes {
		l := &line{Node: c.Node(i), there: there, back: back}
		p.lines, nodes[i] = append(p.lines, l), l
	}
	var err error
	p.client, err = redlock.New(nodes, opts...)
	noErr(t, err)
	t.Cleanup(func() {
		p.set(lineIntact, len(p.lines))
		if err := p.client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// set gives the first n lines a fault.
func (p *party) set(f fault, n int) {
	for _, l := range p.lines[:n] {
		l.set(f)
	}
}

func (p *party) lock(name string, opts ...redlock.Option) *redlock.Lease {
	p.t.Helper()
	return mustLock(p.t, mutexOf(p.t, p.client, name, opts...))
}

// isDone reports whether the lease has ended without asking it: Context().Err()
// would look at the clock.
func isDone(l *redlock.Lease) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// pause is a Backoff without chance.
func pause(d time.Duration) redlock.Option {
	return redlock.WithBackoff(func(int, float64) time.Duration { return d })
}

// A logbook keeps what a client's trace says.
type logbook struct {
	mu  sync.Mutex
	all entries
}

type entries struct {
	renewals []redlock.Renewal
	at       []time.Time // of the renewals
	dangers  []redlock.Danger
	losses   []redlock.Lost
	nodes    []redlock.NodeDone
}

// read returns what is there now.
func (b *logbook) read() entries {
	b.mu.Lock()
	defer b.mu.Unlock()
	return entries{
		renewals: slices.Clone(b.all.renewals), at: slices.Clone(b.all.at),
		dangers: slices.Clone(b.all.dangers), losses: slices.Clone(b.all.losses), nodes: slices.Clone(b.all.nodes),
	}
}

func (b *logbook) trace() redlock.Option {
	return redlock.WithTrace(&redlock.Trace{
		Renewal: func(e redlock.Renewal) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.all.renewals = append(b.all.renewals, e)
			b.all.at = append(b.all.at, time.Now())
		},
		Danger: func(e redlock.Danger) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.all.dangers = append(b.all.dangers, e)
		},
		Lost: func(e redlock.Lost) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.all.losses = append(b.all.losses, e)
		},
		NodeDone: func(e redlock.NodeDone) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.all.nodes = append(b.all.nodes, e)
		},
	})
}

// failed returns how many renewals failed.
func (b *logbook) failed() (n int) {
	for _, e := range b.read().renewals {
		if e.Err != nil {
			n++
		}
	}
	return n
}

// lost checks how many losses were signalled.
func (b *logbook) lost(t testing.TB, want int) {
	t.Helper()
	if losses := b.read().losses; len(losses) != want {
		t.Errorf("Trace.Lost was called %d times, want %d: %v", len(losses), want, losses)
	}
}

// wantLost checks that the lease was lost for the given reasons, and that its
// context says the same.
func wantLost(t testing.TB, l *redlock.Lease, reasons ...error) {
	t.Helper()
	is(t, l.Err(), append(reasons, redlock.ErrLost)...)
	if cause := context.Cause(l.Context()); cause != l.Err() {
		t.Errorf("the context's cause is %v, want %v", cause, l.Err())
	}
	if left := l.Remaining(); left != 0 {
		t.Errorf("%v remain of a lost lease", left)
	}
}

// mustLockFrom locks from a goroutine other than the test's, and returns nil if
// that takes more than 30 s.
func mustLockFrom(m *redlock.Mutex) *redlock.Lease {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l, _ := m.Lock(ctx)
	return l
}

// timeout returns a context that ends after d.
func timeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), d)
	t.Cleanup(cancel)
	return ctx
}

// mustEnd waits for the end of the lease, but not for ever: where it is renewed
// in simulated time, that would be a test that never returns.
func mustEnd(t testing.TB, l *redlock.Lease, within time.Duration) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(within):
		_ = l.Unlock(context.WithoutCancel(t.Context()))
		t.Fatalf("the lease has not ended after %v", within)
	}
}

// locksOn returns the locks on a node in memory, without the library's other keys.
func locksOn(n *redlocktest.Node) []string {
	return slices.DeleteFunc(n.Keys(), func(key string) bool { return strings.HasPrefix(key, "redlock:") })
}
