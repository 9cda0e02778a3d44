// The judge: who held what, on the true clock, and whether that may be.

package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

// A holding is one grant.
type holding struct {
	machine *machine
	name    string
	token   int64
	from    time.Duration // true time
	until   time.Duration // when it is over at the latest, unless it is renewed
	ended   bool          // unlocked, lost, or its machine is dead
	number  int           // of the grant
	lease   *redlock.Lease
}

func (h *holding) String() string {
	return fmt.Sprintf("machine %d, token %d", h.machine.number, h.token)
}

// A ledger has all holdings of a run. It believes nothing of what a lease says of
// itself: it counts from the hooks, on the true clock.
type ledger struct {
	world *World

	mu        sync.Mutex
	holdings  map[string][]*holding // by name, in the order of the grants
	violation string
	history   []Operation
	grants    int
	digest    uint64
}

func newLedger(w *World) *ledger { return &ledger{world: w, holdings: map[string][]*holding{}} }

// violate notes what must not be. The first is the one that counts.
func (l *ledger) violate(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violated(format, args...)
}

func (l *ledger) violated(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	l.world.say("VIOLATION: %s", what)
	if l.violation == "" {
		l.violation = fmt.Sprintf("after %v: %s", l.world.now(), what)
	}
}

// trace returns the hooks of one machine's client.
func (l *ledger) trace(m *machine) *redlock.Trace {
	return &redlock.Trace{
		AttemptDone: func(e redlock.AttemptDone) {
			if e.Err == nil {
				l.granted(m, &e)
			}
		},
		Renewal: func(e redlock.Renewal) {
			if e.Err == nil {
				l.renewed(m, e.Name, e.Validity)
			} else {
				l.world.say("machine %d could not renew %s: %v", m.number, e.Name, e.Err)
			}
		},
		Lost: func(e redlock.Lost) { l.lost(m, e.Name, e.Err) },
		CleanupDropped: func(e redlock.CleanupDropped) {
			l.world.say("machine %d gives up to release %s: %v", m.number, e.Name, e.Err)
			m.dropped(e.Node)
		},
	}
}

// trueTime turns a time on the machine's clock into true time, rounded up.
func (m *machine) trueTime(d time.Duration) time.Duration {
	return time.Duration(float64(d)/m.rate) + 1
}

func (l *ledger) granted(m *machine, e *redlock.AttemptDone) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.world
	now := w.now()
	h := &holding{machine: m, name: e.Name, token: e.Token, from: now, until: now + m.trueTime(e.Validity)}
	began := now - m.trueTime(e.Elapsed)
	w.say("machine %d is granted %s with token %d, after %v, for %v", m.number, h.name, h.token, now-began, h.until-now)
	for _, other := range l.holdings[h.name] {
		if other.held(now) && !w.Profile.Outside {
			l.violated("%s is granted to %v, while %v holds it for %v more", h.name, h, other, other.until-now)
		}
		switch {
		case !w.Fenced:
		case h.token == other.token:
			l.violated("%s is granted twice with the token %d, to %v and %v", h.name, h.token, other, h)
		case h.token < other.token && other.from < began:
			l.violated("%s is granted to %v, after a grant to %v that was %v before it was asked for", h.name, h, other, began-other.from)
		}
	}
	l.holdings[h.name] = append(l.holdings[h.name], h)
	l.grants++
	h.number = l.grants
	l.count(uint64(m.number), uint64(now), uint64(h.token), uint64(h.until))
	l.note(Operation{Kind: Acquire, Worker: m.number, Name: h.name, Lease: h.number, Token: h.token, Call: began, Return: now})
	l.watch(h)
}

// held reports whether the lease may be trusted at that time.
func (h *holding) held(now time.Duration) bool {
	return !h.ended && now < h.until && h.machine.life.Err() == nil
}

// current returns the machine's holding of the name that has not ended, if there is one.
func (l *ledger) current(m *machine, name string) *holding {
	for _, h := range slices.Backward(l.holdings[name]) {
		if h.machine == m && !h.ended {
			return h
		}
	}
	return nil
}

func (l *ledger) renewed(m *machine, name string, validity time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.current(m, name); h != nil && validity > 0 {
		l.prolong(h, l.world.now()+m.trueTime(validity))
	}
}

// extended is told what came of a worker's own Extend.
func (l *ledger) extended(h *holding, err error) {
	if err != nil {
		return
	}
	validity := h.lease.Remaining()
	l.mu.Lock()
	defer l.mu.Unlock()
	if validity > 0 {
		l.prolong(h, l.world.now()+h.machine.trueTime(validity))
	}
}

func (l *ledger) prolong(h *holding, until time.Duration) {
	now := l.world.now()
	if until <= h.until {
		return
	}
	if now >= h.until && !h.ended {
		l.violated("%s is renewed by %v, %v after it was over", h.name, h, now-h.until)
	}
	for _, other := range l.holdings[h.name] {
		if other != h && other.held(now) && !l.world.Profile.Outside {
			l.violated("%s is renewed by %v, while %v holds it", h.name, h, other)
		}
	}
	h.until = until
	l.count(uint64(h.machine.number), uint64(now), uint64(until))
	l.watch(h)
}

// watch looks at a lease when it is over. The caller holds l.mu.
func (l *ledger) watch(h *holding) {
	until := h.until
	before, _ := h.machine.interrupted()
	after := func(late time.Duration, look func(stops int)) {
		l.world.truth.AfterFunc(until-l.world.now()+late, func() {
			l.mu.Lock()
			due := !h.ended && h.until == until && h.lease != nil && h.machine.life.Err() == nil
			l.mu.Unlock()
			if stops, stopped := h.machine.interrupted(); due && !stopped {
				look(stops - before)
			}
		})
	}
	// By itself, if nothing but time passes. After a suspension timers are late.
	after(time.Millisecond, func(stops int) {
		select {
		case <-h.lease.Done():
		default:
			if stops == 0 {
				l.violate("%s: the context of %v goes on after its end", h.name, h)
			}
		}
	})
	after(time.Microsecond, func(int) {
		if h.lease.Err() == nil {
			l.violate("%s: the lease of %v has no error after its end", h.name, h)
		}
	})
}

// attach tells which lease a holding is.
func (l *ledger) attach(k *worker, lease *redlock.Lease) *holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range slices.Backward(l.holdings[lease.Name()]) {
		if h.machine == k.machine && h.token == lease.FencingToken() && h.lease == nil {
			h.lease = lease
			return h
		}
	}
	l.violated("worker %d has a lease of %s with token %d, of which no hook has told", k.id(), lease.Name(), lease.FencingToken())
	return &holding{machine: k.machine, lease: lease, ended: true}
}

// unlocked and lost are the ends of a lease. It returns how long the lease might have
// been trusted still.
func (l *ledger) unlocked(k *worker, h *holding) (left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.world.say("worker %d unlocks %s, token %d", k.id(), h.name, h.token)
	if !h.ended {
		left = h.until - l.world.now()
	}
	l.finish(h)
	return left
}

// told judges what Unlock said of a lease that had so much left: never that all is well
// if it was over, and where no fault can have taken the keys, never that they were gone.
func (l *ledger) told(k *worker, h *holding, left time.Duration, err error) {
	w := l.world
	switch {
	case err == nil && left <= 0 && !w.Profile.Outside: // where two leases of a name may live on one machine, hooks do not say which was lost
		l.violate("worker %d: Unlock says nothing of %s, token %d, which was over", k.id(), h.name, h.token)
	case len(w.Profile.Kinds) == 0 && left > w.Timeout && errors.Is(err, redlock.ErrNotHeld):
		l.violate("worker %d: Unlock of %s, token %d, with %v left: %v", k.id(), h.name, h.token, left, err)
	}
}

func (l *ledger) lost(m *machine, name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.current(m, name)
	for _, other := range l.holdings[name] { // the hook does not say which: one that is over, if there is one
		if other.machine == m && !other.ended && l.world.now() >= other.until {
			h = other
			break
		}
	}
	if h != nil {
		l.world.say("machine %d has lost %s, token %d: %v", m.number, name, h.token, err)
		l.finish(h)
	}
}

func (l *ledger) finish(h *holding) {
	now := l.world.now()
	if !h.ended {
		h.ended = true
		l.count(uint64(h.machine.number), uint64(now))
		l.note(Operation{Kind: Release, Worker: h.machine.number, Name: h.name, Lease: h.number, Token: h.token, Call: min(now, h.until), Return: now})
	}
}

// died ends what a machine held, which no hook of its client tells.
func (l *ledger) died(m *machine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.holdings)) {
		for _, h := range l.holdings[name] {
			if h.machine == m {
				l.finish(h)
			}
		}
	}
}

// count adds to the digest.
func (l *ledger) count(numbers ...uint64) {
	for _, n := range numbers {
		l.digest = mix(l.digest + n)
	}
}

// record adds to the history.
func (l *ledger) record(o Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(o)
}

func (l *ledger) note(o Operation) { l.history = append(l.history, o) }

// An Operation is an entry of the history, for those who check that it is one that a
// lock, and a storage that checks tokens, could have by itself.
type Operation struct {
	Kind         OperationKind
	Worker       int // for Acquire and Release: the machine
	Name         string
	Lease        int // of an Acquire or Release: the number of the grant, from 1
	Token        int64
	Value        int  // read, or written
	Stale        bool // refused by the storage
	Call, Return time.Duration
}

// An OperationKind is what was done.
type OperationKind uint8

// What a history is of. A Release is the end of a lease, of whichever kind.
const (
	Acquire OperationKind = iota
	Release
	Read
	Write
)
