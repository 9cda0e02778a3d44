// Commands of many callers that travel to a node together.

package redlock

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A ferry is a Node that carries out several commands in one trip.
type ferry interface {
	// carry sends the commands that are still wanted when they are written, and fills
	// in the answers. ctx bounds it; it is nobody's, so that one who leaves takes
	// nobody with him.
	carry(ctx context.Context, calls []*call, answers []carried)
}

// A carried is what came of a command that traveled with others.
type carried struct {
	Reply
	err   error
	alone bool // nothing: it has to go by itself
}

// A flight is commands that travel together. Each has its own time, and nobody who waits
// for one does so for longer.
type flight struct {
	start   time.Time
	calls   []*call
	answers []carried
}

var flights = sync.Pool{New: func() any { return new(flight) }}

// fly carries out a flight.
func (l *lane) fly(f *flight) {
	defer l.client.work.Done()
	places, answered := len(f.calls), false
	l.checkIn(f)
	if len(f.calls) > 0 {
		ctx, cancel := f.context()
		l.ferry.carry(ctx, f.calls, f.answers)
		late, elapsed := ctx.Err() != nil, clock.System.Now().Sub(f.start)
		cancel()
		for i, c := range f.calls {
			a := f.answers[i]
			answered = answered || a.err == nil && !a.alone
			if !a.alone && c.prompt(a.err) {
				c.arrive(c.heard(c.round, answer{Reply: a.Reply}, late, elapsed))
				continue
			}
			places-- // it keeps its own
			l.client.work.Add(1)
			go l.start(&straggler{c, a, late, elapsed})
		}
	}
	l.land(f, places, answered)
}

// prompt reports whether what comes of c can be told without delay. Hooks, loggers and
// questions to the node must not keep those waiting who traveled with it.
func (c *call) prompt(err error) bool {
	set := &c.round.hold.client.set
	return err == nil && c.round.tell == nil && set.trace.NodeDone == nil && set.crashGuard == 0 && !set.strict
}

// A straggler is a call that has traveled with others, and then needs time of its own.
type straggler struct {
	*call
	carried
	late    bool
	elapsed time.Duration
}

func (s *straggler) run(n Node) {
	switch {
	case s.alone && s.dead():
		s.arrive(answer{Reply: Reply{Verdict: Unsent}, err: errGivenUp})
		return
	case s.alone:
		s.arrive(s.send(n))
		return
	}
	ctx, cancel := s.context()
	defer cancel()
	s.arrive(s.heard(ctx, answer{Reply: s.Reply, err: s.err}, s.late, s.elapsed))
}

// checkIn leaves on board whose commands are still wanted, and drops the others: not
// itself, since a hook may hear of that, and must not keep those on board waiting.
func (l *lane) checkIn(f *flight) {
	l.mu.Lock()
	owes := l.owes()
	l.mu.Unlock()
	on := f.calls[:0]
	var unwanted, owed []*call
	for _, c := range f.calls {
		switch {
		case c.dead():
			unwanted = append(unwanted, c)
		case owes && c.creates():
			owed = append(owed, c)
		case !c.op.bare() && !c.round.hold.begin(c):
			unwanted = append(unwanted, c)
		default:
			on = append(on, c)
		}
	}
	clear(f.calls[len(on):])
	f.calls = on
	f.answers = append(f.answers, make([]carried, len(on))...)
	l.drop(unwanted, errGivenUp)
	l.drop(owed, errOverloaded)
}

// drop ends calls unsent. It does not wait. The caller keeps the client open.
func (l *lane) drop(calls []*call, err error) {
	if len(calls) == 0 {
		return
	}
	l.client.work.Go(func() {
		for _, c := range calls {
			c.drop(err)
		}
	})
}

// context ends at the last deadline on board.
func (f *flight) context() (context.Context, context.CancelFunc) {
	if len(f.calls) == 1 {
		return f.calls[0].context()
	}
	last, until := f.calls[0], time.Time{}
	for _, c := range f.calls {
		if d := c.until(f.start); d.After(until) {
			last, until = c, d
		}
	}
	return context.WithDeadline(context.WithoutCancel(last.round), until)
}
