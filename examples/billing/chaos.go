// Chaos, from the parent's side: who is stopped or killed, when the stopped go
// on, and what comes of it.

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// strikes are the moments of a run with chaos. At checked the worker is stopped
// until somebody else has billed its invoice, at the others it is killed.
var strikes = []moment{checked, checked, checked, charging, written, committed}

// chaosStops is how many workers can be stopped at the same time.
const chaosStops = 3

// worstMoments chooses the invoices whose billing is struck, in the half that
// comes first, lest nobody is left with work to do meanwhile.
func worstMoments(invoices int, seed uint64) map[int64]moment {
	rng := rand.New(rand.NewPCG(seed, 1<<33))
	plan := make(map[int64]moment)
	for i, n := range rng.Perm(max(invoices/2, len(strikes)))[:len(strikes)] {
		plan[int64(n+1)] = strikes[i]
	}
	return plan
}

// checkChaos finds what leaves chaos without workers or without work.
func (c *config) checkChaos(fault func(format string, args ...any)) {
	if c.workers <= chaosStops {
		fault("-workers %d: -chaos stops %d at a time, and somebody has to go on; use %d or more", c.workers, chaosStops, chaosStops+1)
	}
	if c.invoices < len(strikes) {
		fault("-invoices %d: -chaos strikes in %d of them", c.invoices, len(strikes))
	}
}

// A chaos is what has happened of a plan.
type chaos struct {
	struck map[int64]*hit // by invoice
	stale  int            // charges that the fence refused
}

// A hit is a stop or a kill at a moment of the plan.
type hit struct {
	moment  moment
	who     *member
	at      time.Time
	heir    *member       // who billed the invoice meanwhile; nil: nobody yet
	stopped time.Duration // how long; 0: not continued yet
	over    bool          // it has said what became of its charge
}

// strikeChaos does what the plan has for a worker that waits at its moment. An
// invoice is struck once: whoever takes it over goes on.
func (w *watch) strikeChaos(c *crew, e event, hireAs job) error {
	if w.chaos.struck[e.Invoice] != nil {
		c.tellOne(e.from, goOn)
		return nil
	}
	h := &hit{moment: e.Moment, who: e.from, at: time.Now()}
	w.chaos.struck[e.Invoice] = h
	what := fmt.Sprintf("invoice %d of %s", e.Invoice, customerName(e.Customer))
	if e.Moment == checked {
		c.suspend(e.from)
		w.scr.event(bad, "worker %d (pid %d) stopped between its last look at the lease and the commit of %s", e.from.id, e.from.pid, what)
		return nil
	}
	c.kill(e.from)
	place := map[moment]string{
		charging:  "in the middle of the charge for",
		written:   "in the transaction, about to commit",
		committed: "before the unlock, having just committed",
	}[e.Moment]
	hireAs.Worker = len(c.members) + 1
	w.scr.event(bad, "worker %d (pid %d) killed %s %s; worker %d starts in its place", e.from.id, e.from.pid, place, what, hireAs.Worker)
	err := c.hire(hireAs)
	w.members = c.members
	return err
}

// proceedChaos continues the stopped workers whose invoice somebody else has
// billed. If nobody is left to do it, there is nothing to wait for.
func (w *watch) proceedChaos(c *crew) {
	alone := !slices.ContainsFunc(c.members, func(m *member) bool { return !m.gone && !m.stopped })
	for _, h := range w.chaos.struck {
		if h.moment != checked || h.stopped > 0 || h.heir == nil && !alone {
			continue
		}
		h.stopped = time.Since(h.at)
		c.tellOne(h.who, goOn) // read once it is continued
		c.proceed(h.who)
	}
}

// hearRefused takes in that the fence let a worker do nothing.
func (w *watch) hearRefused(e event) {
	w.chaos.stale++
	h := w.chaos.struck[e.Invoice]
	if h == nil || e.from != h.who || h.over {
		w.scr.event(bad, "worker %d refused as stale, nothing was billed: %s", e.from.id, e.Text)
		return
	}
	h.over = true
	w.scr.event(good, "worker %d continued after %s: refused as stale, invoice %d was not billed again",
		e.from.id, seconds(h.stopped), e.Invoice)
}

// hearHit takes in that a worker has billed an invoice. It returns whether that
// was a stopped worker's, and is told by that.
func (w *watch) hearHit(e event) (told bool) {
	h := w.chaos.struck[e.Invoice]
	switch {
	case h == nil || h.moment != checked || h.over:
		return false
	case e.from != h.who:
		if h.heir == nil {
			h.heir = e.from
			w.scr.event(plain, "worker %d took over %s and billed invoice %d, after %s",
				e.from.id, customerName(e.Customer), e.Invoice, seconds(e.At.Sub(h.at)))
		}
		return false
	}
	h.over = true
	again := ""
	if h.heir != nil {
		again = " a second time"
	}
	w.scr.event(bad, "worker %d continued after %s: billed invoice %d%s", e.from.id, seconds(h.stopped), e.Invoice, again)
	return true
}

// String tells in one line what happened.
func (c chaos) String() string {
	stops := 0
	for _, h := range c.struck {
		if h.moment == checked {
			stops++
		}
	}
	return fmt.Sprintf("%d workers stopped between check and commit, %d killed", stops, len(c.struck)-stops)
}
