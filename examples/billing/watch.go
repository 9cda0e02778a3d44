// The parent's view of a run, built from what the workers say.

package main

import (
	"context"
	"fmt"
	"time"
)

// A watch follows one run by what the workers say.
type watch struct {
	conf     config
	scr      *screen
	started  time.Time
	took     time.Duration
	billed   map[int64]int // charges by invoice
	byWorker map[int]int
	waits    []time.Duration // for locks that were granted
	longest  time.Duration   // from the grant of a lock to the commit
	members  []*member
	twice    int // invoices billed more than once
	failures int // workers that ended otherwise than planned

	// The worker that was killed, and since when its customer waits.
	victim   *member
	invoice  int64 // the one it was billing
	customer int64
	killedAt time.Time
	takeover time.Duration // 0: not yet

	stop stop // the worker that was stopped

	chaos chaos // what hit the workers instead
}

func newWatch(conf config, scr *screen) *watch {
	return &watch{conf: conf, scr: scr, billed: make(map[int64]int), byWorker: make(map[int]int), chaos: chaos{struck: make(map[int64]*hit)}}
}

// work runs the workers until all have ended.
func (w *watch) work(ctx context.Context, jobs []job) error {
	crew, err := startCrew(jobs)
	if err != nil {
		return err
	}
	defer crew.stop(w.hear)
	w.members = crew.members

	tick := time.NewTicker(w.scr.every())
	defer tick.Stop()
	pulse := time.NewTicker(20 * time.Millisecond)
	defer pulse.Stop()
	awaited := make(map[*member]bool) // workers that have neither said that they are ready nor ended
	for _, m := range crew.members {
		awaited[m] = true
	}
	for crew.running() > 0 {
		select {
		case e := <-crew.events:
			crew.note(e)
			if e.Kind == ready || e.Kind == exited {
				delete(awaited, e.from)
			}
			if e.Kind == ready && !w.started.IsZero() {
				crew.tellOne(e.from, begin) // it has come in somebody's place
			}
			if len(awaited) == 0 && w.started.IsZero() {
				w.started = time.Now()
				crew.tell(begin)
				if w.stopsNow() {
					crew.tell(hang)
				}
			}
			if e.Kind == stalled {
				w.strike(crew, e.from)
			}
			if e.Kind == poised {
				if err := w.strikeChaos(crew, e, jobs[0]); err != nil {
					return fmt.Errorf("replace worker %d: %w", e.from.id, err)
				}
			}
			w.hear(e)
		case <-pulse.C:
			w.proceed(crew)
			w.proceedChaos(crew)
		case <-tick.C:
			w.scr.status(w.progress())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	w.took = time.Since(w.started)
	return nil
}

// hear takes in one event and prints what a reader wants to know of it.
func (w *watch) hear(e event) {
	who, name := fmt.Sprintf("worker %d", e.from.id), customerName(e.Customer)
	switch e.Kind {
	case ready:
		w.detail("%s is process %d", who, e.from.pid)
	case held:
		w.waits = append(w.waits, e.Wait)
		if e.Customer == w.customer && e.from != w.victim && w.takeover == 0 {
			w.takeover = e.At.Sub(w.killedAt)
			w.scr.event(good, "%s took over %s after %s", who, name, seconds(w.takeover))
		}
		w.hearHeir(e)
		w.detail("%s holds %s, waited %s", who, name, millis(e.Wait))
	case stalled:
		if w.stopsNow() {
			w.hearStop(e)
		}
		if !w.killsNow() {
			break // stopped, or too early for the order to resume, which it has by now
		}
		w.victim, w.invoice, w.customer, w.killedAt = e.from, e.Invoice, e.Customer, time.Now()
		left := e.Left - w.killedAt.Sub(e.At)
		w.scr.event(bad, "%s (pid %d) killed while holding lock %s; its lease ends in %s", who, e.from.pid, name, seconds(left))
	case lost:
		w.hearLost(e)
	case refused:
		w.hearRefused(e)
	case billed:
		w.longest = max(w.longest, e.Hold)
		w.billed[e.Invoice]++
		w.byWorker[e.from.id]++
		told := w.hearHit(e)
		if w.billed[e.Invoice] == 2 {
			w.hearDouble(e, told)
		}
		w.detail("%s billed invoice %d of %s: %s", who, e.Invoice, name, money(e.Cents))
	case waiting:
		w.detail("%s waits for %s", who, name)
	case note, failed:
		w.scr.event(bad, "%s: %s", who, e.Text)
	case stderr:
		w.scr.event(bad, "%s: stderr: %s", who, e.Text)
	case exited:
		if e.Text != "" && !e.from.killed {
			w.failures++
			w.scr.event(bad, "%s (pid %d) failed: %s", who, e.from.pid, e.Text)
		}
	}
}

// hearDouble prints the first double billings, and no more of them than make
// the point, unless it is told already.
func (w *watch) hearDouble(e event, told bool) {
	const enough = 3
	w.twice++
	if told {
		return
	}
	if w.twice <= enough || w.conf.verbose {
		w.scr.event(bad, "worker %d billed invoice %d of %s a second time", e.from.id, e.Invoice, customerName(e.Customer))
	}
	if w.twice == enough && !w.conf.verbose {
		w.scr.event(bad, "… more of that is counted, and shown with -v")
	}
}

func (w *watch) detail(format string, args ...any) {
	if w.conf.verbose {
		w.scr.event(plain, format, args...)
	}
}
