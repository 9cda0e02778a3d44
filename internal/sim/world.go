// A run: the world is made, lives with its faults, heals, and ends.

package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A World is one run.
type World struct {
	Setting
	Spec
	dice     dice
	truth    truth
	cluster  *redlocktest.Cluster
	machines []*machine
	links    [][]*link // by machine and node
	stores   map[string]*store
	ledger   *ledger
	faults   []*Fault
	underWay atomic.Int64 // messages

	mu       sync.Mutex
	striking []*Fault            // those that meddle with messages now
	down     []int               // by node: faults that keep it down
	back     []time.Duration     // by node: how far its clock was stepped back
	halted   []bool              // by node: it was stopped
	spoilt   []bool              // by node: it has lost data
	owners   map[string]claimant // by the value of their claims
	copied   map[claimant]bool   // those of whose requests there was a second
	tale     strings.Builder
}

// A Result is what came of a run.
type Result struct {
	Setting   Setting
	Faults    []*Fault
	Violation string // empty if there was none
	Tale      string // if it was asked for
	Digest    uint64 // equal for runs that were equal
	Grants    int
	Messages  int
	History   []Operation
}

// Run makes one run. It is called in a bubble of testing/synctest.
func Run(spec Spec) *Result {
	w := &World{Spec: spec, dice: dice(mix(spec.Seed + label(spec.Profile.Name))), truth: newTruth()}
	before := runtime.NumGoroutine()
	w.Setting = spec.Profile.setting(w.dice)
	for _, f := range spec.Profile.schedule(w.dice, &w.Setting) {
		if spec.Keep == nil || slices.Contains(spec.Keep, f.Number) {
			w.faults = append(w.faults, f)
		}
	}
	w.make()
	w.live()
	w.end(before)

	l := w.ledger
	return &Result{
		Setting: w.Setting, Faults: w.faults, Violation: l.violation, Tale: w.tale.String(),
		Digest: l.digest, Grants: l.grants, Messages: w.messages(), History: l.history,
	}
}

func (w *World) make() {
	w.cluster = redlocktest.New(w.Nodes, redlocktest.WithClock(w.truth))
	w.down, w.back, w.spoilt = make([]int, w.Nodes), make([]time.Duration, w.Nodes), make([]bool, w.Nodes)
	w.halted = make([]bool, w.Nodes)
	w.owners, w.copied = map[string]claimant{}, map[claimant]bool{}
	w.ledger = newLedger(w)
	for i := range w.Nodes {
		c := w.cluster.Node(i).Clock()
		c.SetRate(w.NodeRates[i])
		c.Step(w.NodeOffsets[i])
	}
	w.stores = map[string]*store{}
	for i := range w.Names {
		w.stores[name(i)] = newStore()
	}
	for i := range w.Machines {
		m := newMachine(w, i)
		links := make([]*link, w.Nodes)
		nodes := make([]redlock.Node, w.Nodes)
		for j := range nodes {
			links[j] = newLink(w, m, j)
			nodes[j] = links[j]
		}
		opts := append(w.options(), redlock.WithClock(m), redlock.WithTrace(w.ledger.trace(m)))
		client, err := redlock.New(nodes, append(opts, w.Options...)...)
		if err != nil {
			panic(fmt.Sprintf("sim: %v", err)) // of the simulator
		}
		m.client = client
		w.machines, w.links = append(w.machines, m), append(w.links, links)
	}
}

func name(i int) string { return string(rune('a' + i)) }

// live lets the workers work and the faults happen.
func (w *World) live() {
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for _, m := range w.machines {
		for i := range w.Workers {
			workers.Go(func() { newWorker(w, m, i).run(ctx) })
		}
	}
	for _, f := range w.faults {
		w.plan(f)
	}
	w.truth.pass(w.Length)
	cancel()
	for _, f := range w.faults {
		w.over(f)
	}
	w.say("all faults are over, and the workers come to an end")
	workers.Wait()
}

// end checks what is left when all is quiet, and after Close.
func (w *World) end(goroutines int) {
	const slack = 50 * time.Millisecond
	for range 100 {
		if w.underWay.Load() == 0 {
			break
		}
		w.truth.pass(w.TTL / 10)
	}
	w.truth.pass(2*w.Timeout + slack)
	for _, lock := range w.locks() {
		if !w.excused(lock) {
			w.ledger.violate("node %d still has the lock %q of a token that nobody holds, %q", lock.node, lock.key, lock.value)
		}
	}

	for name, s := range w.stores {
		if s.value != s.writes {
			w.ledger.violate("%s: the storage let %d updates through and has %d", name, s.writes, s.value)
		}
	}
	for _, m := range w.machines {
		start := w.now()
		err := m.client.Close()
		if took, most := w.now()-start, 4*w.Timeout+time.Second+slack; took > most {
			w.ledger.violate("machine %d: Close took %v, more than %v", m.number, took, most)
		}
		if err != nil && m.life.Err() == nil {
			w.ledger.violate("machine %d: Close: %v", m.number, err)
		}
	}
	w.truth.pass(w.TTL + w.TTL/50 + stepBack + slack)
	for _, lock := range w.locks() {
		w.ledger.violate("node %d has the lock %q of the token %q, after its TTL", lock.node, lock.key, lock.value)
	}
	for _, m := range w.machines {
		for _, l := range w.links[m.number] {
			if left := l.unreleased(); m.life.Err() == nil && len(left) > m.mayOwe(l.Name()) {
				w.ledger.violate("machine %d: acquires of %q had no answer from node %d, and no release followed", m.number, left, l.number)
			}
		}
		m.die()
	}
	w.truth.pass(time.Second)
	if runtime.NumGoroutine() > goroutines {
		if left := inBubble(); len(left) > 0 {
			w.ledger.violate("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n"))
		}
	}
}

// inBubble returns the stacks of the goroutines of this bubble, but for the caller and
// those of the testing package.
func inBubble() (others []string) {
	stacks := make([]byte, 1<<22)
	all := strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n")
	_, mine, _ := strings.Cut(all[0], "bubble ")
	mine, _, _ = strings.Cut(mine, "]")
	for _, stack := range all[1:] {
		made := strings.Contains(stack, "internal/synctest.Run(") || strings.Contains(stack, "testingSynctestTest(")
		if strings.Contains(stack, "synctest bubble "+mine+"]") && !made {
			others = append(others, stack)
		}
	}
	return others
}

// A claimant is a token.
type claimant struct {
	machine *machine
	number  uint64
}

// A lock is a key that a node has.
type lock struct {
	node       int
	key, value string
}

func (w *World) locks() []lock {
	var found []lock
	for i := range w.Nodes {
		n := w.cluster.Node(i)
		for _, key := range n.Keys() {
			if strings.HasPrefix(key, "lock:") {
				value, _, _ := n.Get(key)
				found = append(found, lock{i, key, value})
			}
		}
	}
	return found
}

// excused reports whether nothing could have released the lock: who took it is dead, or
// the network has put it there again, or the node has lost the tombstone that would have
// kept it out, or was given it back from older data, or its clock was stepped back, so
// that it still has what its owner has good reason to think expired, or it was stopped and
// carried the acquire out when that had given up.
func (w *World) excused(k lock) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.owners[k.value]
	if w.spoilt[k.node] || w.copied[c] {
		return true
	}
	owner := c.machine
	return owner.life.Err() != nil || (w.back[k.node] > 0 || w.halted[k.node]) && owner.mayOwe(w.cluster.Node(k.node).Name()) > 0
}

// messages returns how many were sent.
func (w *World) messages() int {
	n := 0
	for _, links := range w.links {
		for _, l := range links {
			for _, count := range l.counts {
				n += int(count)
			}
		}
	}
	return n
}

// say adds a line to the tale.
func (w *World) say(format string, args ...any) {
	if !w.Tell {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.tale, "%11.6fs  ", w.now().Seconds())
	fmt.Fprintf(&w.tale, format, args...)
	w.tale.WriteByte('\n')
}

// now is the true time since the start.
func (w *World) now() time.Duration { return w.truth.Elapsed() }
