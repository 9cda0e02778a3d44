// The crash guard: a node that has restarted stays out of votes for a while.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A guard keeps a node whose process is young out of acquisitions: it may have
// forgotten locks, or numbers of the fencing counter, that it had granted before.
// This is the "delayed restart" of the Redlock specification. The votes are sent
// all the same, and a key that is there after the guard's time counts in renewals.
type guard struct {
	mu      sync.Mutex
	running *probing // the present probe, if there is one
	next    *probing // the one after it, if that is wanted

	probed      bool
	asked       bool
	askedAt     time.Duration // last, on the client's clock
	connections uint64        // when the last probe began
	processes   string        // the run IDs that it found
	since       time.Duration // from when on the node counts, on the client's clock
	blind       bool          // the server does not tell its run ID

	failures int   // acquires and renewals in a row that were not answered
	failure  error // the last
}

// A probing is a probe that some wait for.
type probing struct {
	done chan struct{}
	err  error // valid once done is closed
}

// youngError is why a grant does not count.
type youngError struct{ left time.Duration }

func (e *youngError) Error() string {
	return fmt.Sprintf("the server started lately and has no vote for another %v (WithCrashGuard)", e.left.Round(time.Millisecond))
}

// note takes how the node has answered an acquire or a renewal, and sees to it that
// it is looked at now and then, if anybody wants to know what it is like: its clock may
// change at any time, one that never grants would not be missed, and a client may hold
// one lock for months. Nobody waits for the look.
func (l *lane) note(err error) {
	set := &l.client.set
	if _, ok := l.node.(Prober); !ok || !set.logged && !set.strict {
		return
	}
	_, some := l.client.unfitness(l.index)
	now := set.clock.Elapsed()
	g := &l.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := errors.AsType[*unfitError](err); err == nil || known {
		g.failures = 0
	} else {
		g.failures, g.failure = g.failures+1, because(newNodeError(l.node.Name(), "", err))
	}
	age := now - g.askedAt
	if !g.asked || age >= lookAgain || age >= lookSoon && (set.strict && some || g.failures >= manyFailures) {
		l.want(now)
	}
}

// vouch returns an error if the node's grant, which has just been answered, does
// not count. What matters to that is asked of the server after a new connection
// only: all others lead to processes that have been asked. A probe that begins after
// the answer speaks for the process that gave it, or for a younger one; so one probe
// does for all who have come to want it by then.
func (l *lane) vouch(ctx context.Context) error {
	set := &l.client.set
	if set.crashGuard == 0 && !set.strict {
		return nil
	}
	g, p := &l.guard, l.node.(Prober) // New has seen to it
	g.mu.Lock()
	var wanted *probing
	if !g.probed || p.Connections() != g.connections {
		wanted = l.want(set.clock.Elapsed())
	}
	g.mu.Unlock()
	if wanted != nil {
		select {
		case <-wanted.done:
			if wanted.err != nil {
				return fmt.Errorf("asked whether it has a vote: %w", wanted.err)
			}
		case <-ctx.Done():
			return ErrNodeTimeout
		}
	}
	if set.strict {
		if err, _ := l.client.unfitness(l.index); err != nil {
			return err
		}
	}
	if set.crashGuard == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if left := g.since - l.client.set.clock.Elapsed(); left > 0 {
		return &youngError{left}
	}
	return nil
}

// failing returns why the node gives no votes, if that is so.
func (l *lane) failing() error {
	l.guard.mu.Lock()
	defer l.guard.mu.Unlock()
	if l.guard.failures < manyFailures {
		return nil
	}
	return l.guard.failure
}

// want returns the probe that begins next. The caller holds the guard's mutex.
func (l *lane) want(now time.Duration) *probing {
	g := &l.guard
	if g.next == nil {
		g.asked, g.askedAt = true, now
		g.next = &probing{done: make(chan struct{})}
		if g.running == nil {
			l.client.work.Go(l.probe) // the caller keeps the client open
		}
	}
	return g.next
}

// probe asks the server for all who want it to be asked, until nobody does.
func (l *lane) probe() {
	g, p := &l.guard, l.node.(Prober)
	g.mu.Lock()
	for g.running == nil && g.next != nil {
		g.running, g.next = g.next, nil
		g.mu.Unlock()
		connections := uint64(0)
		if set := &l.client.set; set.crashGuard > 0 || set.strict {
			connections = p.Connections() // a node that is asked for it begins to count
		}
		start := l.client.set.clock.Elapsed()
		ctx, cancel := context.WithTimeout(context.Background(), l.client.set.nodeTimeout)
		infos, err := p.Probe(ctx)
		cancel()
		if err == nil && len(infos) == 0 {
			err = errors.New("it has told nothing")
		}
		now := l.client.set.clock.Elapsed()
		news := l.client.admit(l.index, infos, l.failing(), now, now-start)
		g.mu.Lock()
		if err == nil {
			g.learn(infos, now, l.client.set.crashGuard)
			g.connections = connections
		}
		g.running.err = err
		close(g.running.done)
		g.running = nil
		g.mu.Unlock()
		l.client.logFindings(news) // nobody is to wait for the logger, which may even be a caller
		g.mu.Lock()
	}
	g.mu.Unlock()
}

// learn takes what a probe has found at the given time. The first time it has to
// rely on the server's word for how long that has been up. Later, a process that
// was not there before counts from now: the word rests on the server's wall clock.
func (g *guard) learn(infos []ServerInfo, now, d time.Duration) {
	var ids []string
	young := time.Duration(0)
	first := !g.probed || g.blind
	g.blind = false
	for _, s := range infos {
		ids = append(ids, s.RunID)
		young = max(young, d+time.Second-max(s.Uptime, 0)) // it is in whole seconds
		g.blind = g.blind || s.RunID == ""
	}
	slices.Sort(ids)
	processes := strings.Join(ids, " ")
	switch {
	case g.blind:
		g.since = now
	case first:
		g.since = now + young
	case processes != g.processes:
		g.since = now + d
	}
	g.probed, g.processes = true, processes
}
