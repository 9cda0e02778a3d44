// Commands that travel to a node together.

package redlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
)

// How many commands travel together, how many such flights there are at once, and how
// soon after one the next takes off if none has landed. On a long way it is not so soon:
// then they follow each other all along it. If so many do not land, more follow once in
// the time of a way: the others may be lost, and the node there again.
const (
	maxFlight  = 64
	maxFlights = 16
	soonest    = time.Millisecond

	unhurried = 2 // flights under way, of which one may be a release that nobody waits for
)

// An airport sends the commands of one node that have about the same time, so that one
// with little does not wait for the answer to one with much. A command that finds next to nothing under
// way goes by itself. Others wait for a flight to land, or for a moment, and then go
// together: the more callers there are, the fuller the flights. A connection carries
// one flight at a time, so a pool of them is enough for any number of callers, however
// long the way is.
//
// It has no limit for those who wait, since a lane has one for those under way.
type airport struct {
	mu       sync.Mutex
	underWay int
	waiting  []*command
	last     time.Time     // of the last take-off
	way      time.Duration // that flights take, smoothed
	timer    *time.Timer   // of the next take-off, if none lands before
	armed    bool          // timer is running
}

// A ticket is what a command waits with.
type ticket struct {
	ctx    context.Context
	client redis.UniversalClient
	landed chan struct{}
}

// landings are channels with room for one landing.
var landings = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// process sends cmd and returns its error when the driver is through with it, which
// the client's timeouts bound. One whose ctx ends before it is written never is. What
// has been written nobody's ctx cuts off but the client's timeouts.
func (a *airport) process(ctx context.Context, client redis.UniversalClient, cmd *command) error {
	a.mu.Lock()
	if a.underWay < unhurried && len(a.waiting) == 0 {
		start := a.takeOff()
		a.mu.Unlock()
		defer a.land(start) //nolint:contextcheck // it begins the flights of others
		return client.Process(ctx, cmd)
	}
	cmd.ticket = ticket{ctx, client, landings.Get().(chan struct{})}
	a.waiting = append(a.waiting, cmd)
	if len(a.waiting) >= maxFlight && a.underWay < maxFlights {
		a.board() //nolint:contextcheck // as above
	}
	a.schedule()
	a.mu.Unlock()
	select {
	case <-cmd.landed:
	case <-ctx.Done():
		if a.leave(cmd) {
			landings.Put(cmd.landed)
			return ctx.Err()
		}
		if cmd.revoke() { // the flight is under way to a connection; it will tell nobody
			return ctx.Err()
		}
		<-cmd.landed
	}
	landings.Put(cmd.landed)
	return cmd.Err()
}

// leave takes cmd out of those who wait, and reports whether it was there: then nothing
// was sent.
func (a *airport) leave(cmd *command) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, w := range a.waiting {
		if w == cmd {
			n := copy(a.waiting[i:], a.waiting[i+1:])
			a.keep(i + n)
			return true
		}
	}
	return false
}

// keep makes the first n all that wait. The caller holds a.mu.
func (a *airport) keep(n int) {
	clear(a.waiting[n:])
	a.waiting = a.waiting[:n]
}

// takeOff notes that a flight begins. The caller holds a.mu.
func (a *airport) takeOff() time.Time {
	a.underWay++
	a.last = clock.System.Now()
	return a.last
}

// land notes that a flight is over, and lets the next begin.
func (a *airport) land(start time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay--
	a.way += (clock.System.Now().Sub(start) - a.way) / 8
	for full := true; full && a.underWay < maxFlights; full = len(a.waiting) >= maxFlight {
		a.board()
	}
	a.schedule()
}

// due lets a flight begin if it is time. The timer calls it.
func (a *airport) due() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed = false
	if a.early() <= 0 {
		a.board()
	}
	a.schedule()
}

// early returns how long it is until the next flight may begin although none has
// landed. The caller holds a.mu.
func (a *airport) early() time.Duration {
	wait := max(soonest, a.way/maxFlights)
	if a.underWay >= maxFlights {
		wait *= maxFlights
	}
	return wait - clock.System.Now().Sub(a.last)
}

// schedule makes sure that those who wait will not do so for ever. The caller holds
// a.mu.
func (a *airport) schedule() {
	if len(a.waiting) == 0 || a.armed {
		return
	}
	a.armed = true
	if a.timer == nil {
		a.timer = time.AfterFunc(a.early(), a.due)
		return
	}
	a.timer.Reset(a.early())
}

// board lets a flight begin with those who have waited longest. The caller holds a.mu.
func (a *airport) board() {
	n := min(len(a.waiting), maxFlight)
	if n == 0 {
		return
	}
	flight := slices.Clone(a.waiting[:n])
	a.keep(copy(a.waiting, a.waiting[n:]))
	go a.fly(flight, a.takeOff())
}

// fly carries out a flight. Its commands are their callers' again as soon as they have
// been told.
func (a *airport) fly(flight []*command, start time.Time) {
	if len(flight) == 1 {
		cmd := flight[0]
		cmd.SetErr(cmd.client.Process(cmd.ctx, cmd))
	} else {
		ctx, cancel := common(flight)
		cmds := make([]redis.Cmder, len(flight))
		for i, cmd := range flight {
			cmds[i] = cmd
		}
		pipe := flight[0].client.Pipeline()
		_ = pipe.BatchProcess(ctx, cmds...) // queues them
		_, err := pipe.Exec(ctx)
		cancel()
		if !slices.ContainsFunc(flight, (*command).returned) {
			for _, cmd := range flight { // nothing has passed a hook, or there is no connection
				cmd.SetErr(err)
			}
		}
	}
	a.land(start)
	for _, cmd := range flight {
		cmd.landed <- struct{}{}
	}
}

// returned reports whether something came of the command.
func (c *command) returned() bool { return c.Err() != nil || len(c.Bytes()) > 0 }

// common returns a context that ends at the last deadline on board, and has the values
// of that command's. It is nobody's: one who leaves must not take the others with him.
func common(flight []*command) (context.Context, context.CancelFunc) {
	last, deadline := flight[0].ctx, time.Time{}
	for _, cmd := range flight {
		d, ok := cmd.ctx.Deadline()
		if !ok {
			return context.WithoutCancel(cmd.ctx), func() {}
		}
		if d.After(deadline) {
			last, deadline = cmd.ctx, d
		}
	}
	return context.WithDeadline(context.WithoutCancel(last), deadline)
}
