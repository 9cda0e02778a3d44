// The worker that is stopped while it holds a lock, and continued when its
// lease is over.

package main

import (
	"fmt"
	"time"
)

// A stop is what became of the stopped worker, as the parent sees it.
type stop struct {
	who         *member // nil: nobody was stopped
	invoice     int64   // the one it was billing
	customer    int64
	at          time.Time
	takeover    time.Duration // 0: not yet
	continuedAt time.Time
	lost        bool          // it has said, once continued, that its lease is lost
	noticed     time.Duration // how long that took
}

// killsNow and stopsNow tell what happens to a worker that hangs in a charge.
// The kill comes first, so that it cannot hit the worker that was stopped.
func (w *watch) killsNow() bool { return w.conf.kills() && w.victim == nil }

func (w *watch) stopsNow() bool { return w.conf.stop && !w.killsNow() && w.stop.who == nil }

// strike kills or stops a worker that hangs in a charge.
func (w *watch) strike(c *crew, m *member) {
	switch {
	case w.killsNow():
		c.kill(m)
		if w.conf.stop {
			c.tell(hang)
		} else {
			c.tell(resume)
		}
	case w.stopsNow():
		c.suspend(m)
		c.tell(resume, m) // m hangs on, and is told when it is continued
	}
}

// proceed continues the stopped worker when it is time.
func (w *watch) proceed(c *crew) {
	s := &w.stop
	if s.who == nil || !s.continuedAt.IsZero() {
		return
	}
	stopped, ttl := time.Since(s.at), w.conf.ttl
	if stopped < ttl+ttl/4 {
		return
	}
	// An heir may be late: it comes when it has billed others, or is slow.
	if s.takeover == 0 && c.running() > 1 && stopped < 5*ttl+2*w.conf.work {
		return
	}
	s.continuedAt = time.Now()
	c.proceed(s.who)
	// It hangs until this or the end of its lease, and asks the lease after either.
	c.tellOne(s.who, resume)
}

func (w *watch) hearStop(e event) {
	w.stop = stop{who: e.from, invoice: e.Invoice, customer: e.Customer, at: time.Now()}
	left := e.Left - w.stop.at.Sub(e.At)
	w.scr.event(bad, "worker %d (pid %d) stopped while holding lock %s; its lease ends in %s",
		e.from.id, e.from.pid, customerName(e.Customer), seconds(left))
}

// hearHeir takes in that somebody has a lock, perhaps that of the stopped worker.
func (w *watch) hearHeir(e event) {
	s := &w.stop
	if s.who == nil || e.from == s.who || e.Customer != s.customer || s.takeover != 0 || e.At.Before(s.at) {
		return
	}
	s.takeover = e.At.Sub(s.at)
	w.scr.event(good, "worker %d took over %s from the stopped worker %d after %s",
		e.from.id, customerName(e.Customer), s.who.id, seconds(s.takeover))
}

// hearLost takes in that a worker gave up a charge because its lease was lost.
func (w *watch) hearLost(e event) {
	s := &w.stop
	if e.from != s.who || s.continuedAt.IsZero() || e.Invoice != s.invoice || s.lost {
		w.scr.event(bad, "worker %d gave up %s: %s", e.from.id, customerName(e.Customer), e.Text)
		return
	}
	s.lost, s.noticed = true, e.At.Sub(s.continuedAt)
	w.scr.event(good, "worker %d continued after %s: its lease is lost, nothing was committed",
		e.from.id, seconds(s.continuedAt.Sub(s.at)))
}

// String tells the whole story in one line.
func (s stop) String() string {
	if s.who == nil {
		return "nobody"
	}
	text := fmt.Sprintf("worker %d, billing invoice %d", s.who.id, s.invoice)
	if s.takeover > 0 {
		text += fmt.Sprintf("; %s taken over after %s", customerName(s.customer), seconds(s.takeover))
	} else {
		text += fmt.Sprintf("; nobody took over %s", customerName(s.customer))
	}
	switch {
	case s.continuedAt.IsZero():
		return text + "; never continued"
	case !s.lost:
		return text + fmt.Sprintf("; continued after %s, lease NOT lost", seconds(s.continuedAt.Sub(s.at)))
	}
	return text + fmt.Sprintf("; continued after %s, noticed in %s, committed nothing", seconds(s.continuedAt.Sub(s.at)), millis(s.noticed))
}
