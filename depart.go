// When commands that travel together depart.

package redlock

import (
	"time"

	"github.com/quorumlock/redlock/clock"
)

// How many commands travel together, and how many such flights there are at once.
const (
	maxFlight  = 128
	maxFlights = 24
	unhurried  = 2 // flights under way, of which one may be a release that nobody waits for
)

// When the next flight departs although none has landed. To a node that is nearby only
// if one seems to be stuck: the fewer and fuller they are, the less does a command cost,
// on both sides. On a long way they follow each other, so that none waits for long.
const (
	soonest = time.Millisecond
	nearby  = 2 * time.Millisecond
	stuck   = 8 * time.Millisecond
)

// An airport says when the commands that wait in a lane depart. The lane's mutex guards
// it.
type airport struct {
	flights int           // under way
	size    int           // of the last
	last    time.Time     // when it departed
	way     time.Duration // what a trip takes at best, of late
	timer   *time.Timer   // of the next departure, if none lands before
	at      time.Time     // when it ends; zero if it does not run
}

// travels reports whether j goes with others, and returns it.
func (l *lane) travels(j job) (*call, bool) {
	if l.ferry == nil {
		return nil, false
	}
	c, ok := j.(*call)
	return c, ok && c.op != opEnlist && c.op != opDelist
}

// depart lets flights begin if it is time, where landed says that one has just ended, and
// sees to it that those who wait do not do so for ever. The caller holds l.mu, and keeps
// the client open if anything waits.
func (l *lane) depart(landed bool) {
	a := &l.airport
	for {
		waiting := l.queued()
		if waiting == 0 || l.underWay >= maxUnderWay { // who gives a place back comes here
			return
		}
		if !l.ready(waiting, landed) {
			break
		}
		l.board()
		landed = false
	}
	early := a.early()
	at := clock.System.Now().Add(early)
	switch {
	case a.timer == nil:
		a.timer = time.AfterFunc(early, l.due)
	case a.at.IsZero() || at.Before(a.at): // others have landed meanwhile
		a.timer.Reset(early)
	default:
		return
	}
	a.at = at
}

// ready reports whether the next flight may begin now.
func (l *lane) ready(waiting int, landed bool) bool {
	a := &l.airport
	far := a.way >= nearby
	switch {
	case a.flights == 0, a.flights < unhurried && (far || a.size == 1):
		return true
	case far && (landed || waiting >= maxFlight):
		return true
	default:
		return a.early() <= 0
	}
}

// early returns how long it is until the next flight may begin although none has
// landed. If so many do not land, the others may be lost, and the node there again: more
// follow, less often.
func (a *airport) early() time.Duration {
	wait := stuck
	if a.way >= nearby {
		wait = max(soonest, a.way/maxFlights)
	}
	if a.flights >= maxFlights {
		wait *= maxFlights
	}
	return max(wait-clock.System.Now().Sub(a.last), 0)
}

// due is what the timer calls.
func (l *lane) due() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.airport.at = time.Time{}
	l.depart(false)
}

// board lets those go who are first: together, or by themselves.
func (l *lane) board() {
	var f *flight
	for n := 0; n < maxFlight && l.underWay < maxUnderWay; n++ {
		j := l.first()
		if j == nil {
			break
		}
		l.underWay++
		switch c, ok := l.travels(j); {
		case !ok:
			l.client.work.Add(1)
			go l.start(j)
		case f == nil:
			f = flightOf(c)
		default:
			f.calls = append(f.calls, c)
		}
	}
	if f != nil {
		l.takeOff(f)
	}
}

// flightOf makes a flight with c on board.
func flightOf(c *call) *flight {
	f := flights.Get().(*flight)
	f.calls = append(f.calls, c)
	return f
}

// takeOff lets a flight begin. The caller holds l.mu, and keeps the client open.
func (l *lane) takeOff(f *flight) {
	f.start = clock.System.Now()
	a := &l.airport
	a.flights, a.size, a.last = a.flights+1, len(f.calls), f.start
	l.client.work.Add(1)
	go l.fly(f)
}

// land notes that a flight is over, and lets the next begin.
func (l *lane) land(f *flight, places int, answered bool) {
	const few = 8 // do not take longer than one
	l.mu.Lock()
	a := &l.airport
	a.flights--
	l.underWay -= places
	if way := clock.System.Now().Sub(f.start); answered && (len(f.calls) <= few || way > stuck) {
		if a.way == 0 || way < a.way {
			a.way = way
		} else {
			a.way += (way - a.way) / 64
		}
	}
	l.depart(true)
	l.mu.Unlock()
	clear(f.calls)
	clear(f.answers)
	f.calls, f.answers = f.calls[:0], f.answers[:0]
	flights.Put(f)
}
