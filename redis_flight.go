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
// soon after one the next takes off if none has landed.
const (
	maxFlight  = 64
	maxFlights = 16
	between    = time.Millisecond
)

// An airport sends the commands of one node. A command that finds nothing under way
// goes by itself. Others wait for a flight to land, and then go together: the more
// callers there are, the fuller the flights. Where the way is long, it is not waited
// for so long that the flights could not follow each other all along it.
type airport struct {
	mu       sync.Mutex
	underWay int
	waiting  []*passenger
	last     time.Time     // of the last start
	way      time.Duration // that flights take, smoothed
	timer    *time.Timer   // of the next start, if none lands before
}

// A passenger is a command that waits.
type passenger struct {
	cmd      *command
	deadline time.Time
	client   redis.UniversalClient
	landed   chan struct{}
}

// process sends a command, and returns when the driver does, or unsent when ctx ends.
func (a *airport) process(ctx context.Context, client redis.UniversalClient, cmd *command) error {
	a.mu.Lock()
	if a.underWay == 0 {
		a.underWay++
		a.last = clock.System.Now()
		start := a.last
		a.mu.Unlock()
		err := client.Process(ctx, cmd)
		a.land(start)
		return err
	}
	p := &passenger{cmd: cmd, client: client, landed: make(chan struct{})}
	p.deadline, _ = ctx.Deadline()
	a.waiting = append(a.waiting, p)
	a.schedule()
	a.mu.Unlock()
	select {
	case <-p.landed:
	case <-ctx.Done():
		if a.leave(p) {
			return ctx.Err()
		}
		<-p.landed // soon: the driver is bounded by the last deadline on board
	}
	return cmd.Err()
}

// leave takes p out of those who wait, and reports whether it was there: then nothing
// was sent.
func (a *airport) leave(p *passenger) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, p)
	if i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
	return i >= 0
}

// land notes that a flight is over, and lets the next start.
func (a *airport) land(start time.Time) {
	took := clock.System.Now().Sub(start)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay--
	a.way += (took - a.way) / 8
	a.start()
}

// start lets those who wait take off. The caller holds a.mu.
func (a *airport) start() {
	if len(a.waiting) == 0 || a.underWay >= maxFlights {
		return
	}
	n := min(len(a.waiting), maxFlight)
	flight := append([]*passenger(nil), a.waiting[:n]...)
	a.waiting = append(a.waiting[:0], a.waiting[n:]...)
	a.underWay++
	a.last = clock.System.Now()
	go a.fly(flight, a.last)
	a.schedule()
}

// schedule makes sure that there is a next start. The caller holds a.mu.
func (a *airport) schedule() {
	if len(a.waiting) == 0 || a.underWay >= maxFlights {
		return
	}
	wait := max(between, a.way/maxFlights) - clock.System.Now().Sub(a.last)
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, a.due)
		return
	}
	a.timer.Reset(wait)
}

func (a *airport) due() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) > 0 && clock.System.Now().Sub(a.last) >= between {
		a.start()
	}
}

func (a *airport) fly(flight []*passenger, start time.Time) {
	last := flight[0]
	for _, p := range flight {
		if p.deadline.IsZero() || !last.deadline.IsZero() && p.deadline.After(last.deadline) {
			last = p
		}
	}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if !last.deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, last.deadline)
	}
	if len(flight) == 1 {
		_ = last.client.Process(ctx, last.cmd)
	} else {
		pipe := last.client.Pipeline()
		for _, p := range flight {
			_ = pipe.Process(ctx, p.cmd)
		}
		_, _ = pipe.Exec(ctx)
	}
	cancel()
	a.land(start)
	for _, p := range flight {
		close(p.landed)
	}
}
