// What faults do to the world.

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/redlocktest"
)

// A state is how far a fault is.
type state uint8

const (
	toCome state = iota
	present
	past
)

// plan sets when the fault begins. A nanosecond keeps those of one instant apart.
func (w *World) plan(f *Fault) {
	at := f.At + time.Duration(f.Number)
	if f.Saved {
		ago := w.dice.between(0, 2*w.TTL, ofFaults, f.id(), 7)
		w.truth.AfterFunc(max(at-ago, 0), func() { w.save(f) })
	}
	w.truth.AfterFunc(at, func() {
		if !w.turn(f, present) {
			return
		}
		w.say("fault %d: %v", f.Number, f)
		if f.Begin != nil {
			f.Begin(w, f)
		}
		if f.End != nil || f.Message != nil {
			w.truth.AfterFunc(f.For, func() { w.over(f) })
		}
	})
}

// over ends the fault, or keeps it from beginning.
func (w *World) over(f *Fault) {
	if w.turn(f, past) {
		w.say("fault %d is over", f.Number)
		if f.End != nil {
			f.End(w, f)
		}
	}
}

// turn moves a fault on, and reports whether there is something to do.
func (w *World) turn(f *Fault, to state) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.state >= to {
		return false
	}
	was := f.state
	f.state = to
	if f.Message != nil {
		w.striking = slices.DeleteFunc(slices.Clone(w.striking), func(o *Fault) bool { return o == f })
		if to == present {
			w.striking = append(w.striking, f)
		}
	}
	return to == present || was == present
}

// present returns the faults that meddle with messages now.
func (w *World) present() []*Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.striking
}

func (w *World) node(f *Fault) *redlocktest.Node { return w.cluster.Node(f.Node) }

func (w *World) machine(f *Fault) *machine { return w.machines[f.Machine] }

// An entry is a key as a node has it.
type entry struct {
	key, value string
	until      time.Time // by the node's clock; zero for ever
}

// save takes the data of the node as they are now.
func (w *World) save(f *Fault) {
	n := w.node(f)
	now := n.Clock().Now()
	var all []entry
	for _, key := range n.Keys() {
		value, ttl, ok := n.Get(key)
		e := entry{key: key, value: value}
		if ttl >= 0 {
			e.until = now.Add(ttl)
		}
		if ok {
			all = append(all, e)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f.saved = all
}

// crash ends the node's process. Its data stay where they are until it starts.
func (w *World) crash(f *Fault) {
	w.mu.Lock()
	w.down[f.Node]++
	w.mu.Unlock()
	w.node(f).Refuse(true)
	w.node(f).Restart(true)
}

// A keep is what a node has of its data when it starts again.
type keep uint8

const (
	keepAll keep = iota
	keepNothing
	keepSaved
)

func (w *World) boot(f *Fault, k keep) {
	n := w.node(f)
	n.Restart(k == keepAll)
	w.mu.Lock()
	saved := f.saved
	w.spoilt[f.Node] = w.spoilt[f.Node] || k != keepAll
	w.down[f.Node]--
	up := w.down[f.Node] == 0
	w.mu.Unlock()
	if k == keepSaved {
		now := n.Clock().Now()
		for _, e := range saved {
			switch left := e.until.Sub(now); {
			case e.until.IsZero():
				n.Set(e.key, e.value, 0)
			case left >= time.Millisecond:
				n.Set(e.key, e.value, left)
			}
		}
	}
	if up {
		n.Refuse(false)
	}
}

func (w *World) halt(f *Fault) {
	w.mu.Lock()
	w.halted[f.Node] = true
	w.mu.Unlock()
	w.node(f).Pause()
}

// stepBack steps a clock back, by no more in all than a run may.
func (w *World) stepBack(f *Fault) {
	w.mu.Lock()
	d := w.dice.between(0, stepBack-w.back[f.Node], ofFaults, f.id(), 8)
	w.back[f.Node] += d
	w.mu.Unlock()
	w.node(f).Clock().Step(-d)
}

func (w *World) evict(f *Fault) {
	for _, key := range w.node(f).Keys() {
		if strings.HasPrefix(key, "lock:") {
			w.node(f).Del(key)
		}
	}
}

// owned notes whose a value is, and twice that the network has copied its request.
func (w *World) owned(value string, c claimant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[value] = c
}

func (w *World) twice(m *machine, number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copied[claimant{m, number}] = true
}

// after calls f once d has passed on the true clock.
func (w *World) after(d time.Duration, f func()) {
	w.underWay.Add(1)
	w.truth.AfterFunc(d, func() {
		defer w.underWay.Add(-1)
		f()
	})
}
