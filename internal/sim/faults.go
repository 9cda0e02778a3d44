// The faults there are, and when they take place.

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Kind is a sort of fault. It begins and ends something, or it meddles with each
// message between those it strikes while it lasts.
type Kind struct {
	Name   string
	Words  string // with %s for whom it strikes
	Strike strike

	// Longest is how long it lasts at most, in TTLs of the run.
	Longest float64

	Saved bool // it needs the data of its node as they were some time before

	Begin, End func(w *World, f *Fault)
	Message    func(w *World, f *Fault, m *message)
}

// A strike is whom a fault strikes.
type strike uint8

const (
	aNode strike = iota
	aMachine
	aLink // between one machine and one node; or between one of them and all others
)

// kinds is every kind of fault. A message's fate is drawn by m.chance, which is another
// number for each message, kind and label.
var kinds = []Kind{
	// Between machines and nodes.
	{
		Name: "lost-requests", Words: "some requests between %s get lost", Strike: aLink, Longest: 2,
		Message: func(_ *World, _ *Fault, m *message) { m.lost = m.lost || m.chance(1) < .5 },
	},
	{
		Name: "lost-replies", Words: "some replies between %s get lost", Strike: aLink, Longest: 2,
		Message: func(_ *World, _ *Fault, m *message) { m.mute = m.mute || m.chance(2) < .5 },
	},
	{
		Name: "broken-connections", Words: "some connections between %s break after the request", Strike: aLink, Longest: 2,
		Message: func(_ *World, _ *Fault, m *message) { m.broken = m.broken || m.chance(3) < .5 },
	},
	{
		Name: "late-requests", Words: "some requests between %s are late, up to most of a TTL", Strike: aLink, Longest: 2,
		Message: func(w *World, _ *Fault, m *message) {
			if m.chance(4) < .3 {
				m.there += time.Duration(.8 * m.chance(5) * float64(w.TTL))
			}
		},
	},
	{
		Name: "late-replies", Words: "some replies between %s are late, up to two node timeouts", Strike: aLink, Longest: 2,
		Message: func(w *World, _ *Fault, m *message) {
			if m.chance(6) < .3 {
				m.back += time.Duration(2 * m.chance(7) * float64(w.Timeout))
			}
		},
	},
	{
		Name: "copies", Words: "some requests between %s arrive once more", Strike: aLink, Longest: 2,
		Message: func(w *World, _ *Fault, m *message) {
			if m.chance(8) < .3 {
				m.copied = 1 + time.Duration(m.chance(9)*float64(w.TTL))
			}
		},
	},
	{
		Name: "slow", Words: "messages between %s take as long as a third of a node timeout", Strike: aLink, Longest: 4,
		Message: func(w *World, _ *Fault, m *message) {
			m.there += time.Duration(m.chance(10) / 3 * float64(w.Timeout))
			m.back += time.Duration(m.chance(11) / 3 * float64(w.Timeout))
		},
	},
	{
		Name: "partition", Words: "nothing gets through between %s", Strike: aLink, Longest: 2,
		Message: func(_ *World, _ *Fault, m *message) { m.lost, m.mute = true, true },
	},

	// Of nodes.
	{
		Name: "node-stops", Words: "%s is stopped", Strike: aNode, Longest: 2,
		Begin: func(w *World, f *Fault) { w.halt(f) },
		End:   func(w *World, f *Fault) { w.node(f).Resume() },
	},
	{
		Name: "node-restarts", Words: "%s restarts and has all its data", Strike: aNode, Longest: 1,
		Begin: func(w *World, f *Fault) { w.crash(f) },
		End:   func(w *World, f *Fault) { w.boot(f, keepAll) },
	},
	{
		Name: "node-forgets", Words: "%s restarts and has lost its data", Strike: aNode, Longest: 1,
		Begin: func(w *World, f *Fault) { w.crash(f) },
		End:   func(w *World, f *Fault) { w.boot(f, keepNothing) },
	},
	{
		Name: "node-rolls-back", Words: "%s restarts with the data of when it was last saved", Strike: aNode, Longest: 1, Saved: true,
		Begin: func(w *World, f *Fault) { w.crash(f) },
		End:   func(w *World, f *Fault) { w.boot(f, keepSaved) },
	},
	{
		Name: "node-clock-back", Words: "the clock of %s steps back", Strike: aNode,
		Begin: func(w *World, f *Fault) { w.stepBack(f) },
	},
	{
		Name: "node-rate", Words: "the clock of %s runs at another rate", Strike: aNode, Longest: 4,
		Begin: func(w *World, f *Fault) {
			w.node(f).Clock().SetRate(1 + drift/2*(2*w.dice.draw(ofFaults, f.id(), 9)-1))
		},
		End: func(w *World, f *Fault) { w.node(f).Clock().SetRate(w.NodeRates[f.Node]) },
	},
	{
		Name: "node-clock-ahead", Words: "the clock of %s steps ahead by more than a TTL", Strike: aNode,
		Begin: func(w *World, f *Fault) { w.node(f).Clock().Step(w.TTL + time.Millisecond) },
	},
	{
		Name: "node-evicts", Words: "%s drops its locks, and not its counters", Strike: aNode,
		Begin: func(w *World, f *Fault) { w.evict(f) },
	},

	// Of machines.
	{
		Name: "machine-stops", Words: "%s is stopped", Strike: aMachine, Longest: 2,
		Begin: func(w *World, f *Fault) { w.machine(f).stop() },
		End:   func(w *World, f *Fault) { w.machine(f).goOn() },
	},
	{
		Name: "machine-sleeps", Words: "%s is suspended", Strike: aMachine, Longest: 2,
		Begin: func(w *World, f *Fault) { w.machine(f).sleep() },
		End:   func(w *World, f *Fault) { w.machine(f).wake() },
	},
	{
		Name: "machine-clock-steps", Words: "the wall clock of %s steps", Strike: aMachine,
		Begin: func(w *World, f *Fault) {
			w.machine(f).skewed.Step(w.dice.between(-time.Second, time.Second, ofFaults, f.id(), 8))
		},
	},
	{
		Name: "machine-dies", Words: "%s dies", Strike: aMachine,
		Begin: func(w *World, f *Fault) {
			w.ledger.died(w.machine(f))
			w.machine(f).die()
		},
	},
}

// kind returns the one of that name.
func kind(name string) *Kind {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		panic("sim: there is no fault called " + name)
	}
	return &kinds[i]
}

// A Fault is one that takes place.
type Fault struct {
	*Kind
	Number        int // in the schedule
	At, For       time.Duration
	Node, Machine int // -1 for all

	state state
	saved []entry // the data of a node that rolls back
}

// id is a label of what is drawn for it.
func (f *Fault) id() uint64 { return uint64(f.Number) + 1000 }

func (f *Fault) String() string {
	one := func(what string, i int) string {
		if i < 0 {
			return "all " + what + "s"
		}
		return fmt.Sprintf("%s %d", what, i)
	}
	var whom string
	switch f.Strike {
	case aNode:
		whom = one("node", f.Node)
	case aMachine:
		whom = one("machine", f.Machine)
	default:
		whom = one("machine", f.Machine) + " and " + one("node", f.Node)
	}
	words := fmt.Sprintf(f.Words, whom)
	if f.For > 0 {
		words += fmt.Sprintf(", for %v", f.For.Round(time.Millisecond))
	}
	return words
}

// strikes reports whether it meddles with messages between the two.
func (f *Fault) strikes(machine, node int) bool {
	return (f.Machine < 0 || f.Machine == machine) && (f.Node < 0 || f.Node == node)
}

// schedule draws the faults of a run.
func (p *Profile) schedule(d dice, s *Setting) []*Fault {
	if len(p.Kinds) == 0 {
		return nil
	}
	var faults []*Fault
	n := 1 + d.below(p.Most, ofFaults, 1)
	for i := range n {
		f := &Fault{Number: i}
		draw := func(l uint64) float64 { return d.draw(ofFaults, f.id(), l) }
		f.Kind = kind(p.Kinds[int(draw(1)*float64(len(p.Kinds)))])
		f.At = time.Duration(draw(2) * float64(s.Length))
		f.For = time.Duration(draw(3) * f.Longest * float64(s.TTL))
		f.Node = int(draw(4) * float64(s.Nodes))
		f.Machine = int(draw(5) * float64(s.Machines))
		if f.Strike == aLink {
			switch c := draw(6); {
			case c < .3:
				f.Node = -1
			case c < .6:
				f.Machine = -1
			}
		}
		faults = append(faults, f)
	}
	return faults
}

// A Profile is a sort of run: which faults there may be, and what holds under them.
type Profile struct {
	Name  string
	Kinds []string
	Most  int // faults in a run

	Guarded    bool // WithCrashGuard
	TrueClocks bool // all of the same rate
	Unfenced   bool // no run has fencing

	// Outside is for faults beyond what exclusion rests on: only tokens, and the
	// storage that checks them, have to be right.
	Outside bool
}

var (
	network = []string{"lost-requests", "lost-replies", "broken-connections", "late-requests", "late-replies", "copies", "slow", "partition"}
	clocks  = []string{"node-clock-back", "node-rate", "machine-clock-steps"}
	stops   = []string{"node-stops", "machine-stops", "machine-sleeps", "machine-dies"}
	crashes = []string{"node-restarts", "node-forgets", "node-rolls-back"}
)

// Profiles are those whose runs are free of violations.
var Profiles = []*Profile{
	{Name: "calm", TrueClocks: true},
	{Name: "network", Kinds: network, Most: 12},
	{Name: "clocks", Kinds: append([]string{"machine-stops", "partition"}, clocks...), Most: 12},
	{Name: "stops", Kinds: append([]string{"late-requests", "node-restarts"}, stops...), Most: 12},
	{Name: "crashes", Kinds: append([]string{"partition", "slow", "node-stops"}, crashes...), Most: 16, Guarded: true},
	{Name: "everything", Kinds: slices.Concat(network, clocks, stops, crashes), Most: 24, Guarded: true},
	{Name: "outside", Kinds: slices.Concat(network, stops, []string{"node-clock-ahead", "node-evicts", "node-evicts"}), Most: 20, Outside: true},
}

// ProfileOf returns the profile of that name.
func ProfileOf(name string) (*Profile, error) {
	var names []string
	for _, p := range Profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("sim: there is no profile %q, but %s", name, strings.Join(names, ", "))
}
