// What a run is made of: all but the faults.

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
)

// A Spec says which run it is.
type Spec struct {
	Profile *Profile
	Seed    uint64

	// Keep are the faults of the schedule that take place. Nil stands for all.
	Keep []int

	// Options come after those of the setting: for a run that has to go wrong.
	Options []redlock.Option

	// Tell keeps a record of what happens, to be printed.
	Tell bool

	_ struct{}
}

// Again returns the flags of the test that make the same run.
func (s *Spec) Again() string {
	flags := fmt.Sprintf("-sim.profile %s -sim.seed %d", s.Profile.Name, s.Seed)
	if s.Keep != nil {
		flags += " -sim.faults " + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Keep), " ", ","), "[]")
		if len(s.Keep) == 0 {
			flags += "none"
		}
	}
	return flags
}

// A Setting is what the seed of a run has decided.
type Setting struct {
	Nodes, Machines int
	Workers         int // on each machine
	Names           int
	TTL             time.Duration
	Timeout         time.Duration // of a node
	Way             time.Duration // that a message takes, on average
	Fenced          bool
	Renewed         bool
	Guard           time.Duration // 0 without
	Length          time.Duration // of the run, until everything heals

	NodeRates, MachineRates     []float64
	NodeOffsets, MachineOffsets []time.Duration
}

// Labels of what a seed decides.
const (
	ofSetting = iota + 1
	ofFaults
	ofMessages
	ofWorkers
	ofMachines
)

const (
	drift      = 0.01                   // Drift.Factor, of which each side may have half
	clockBound = 3 * time.Second        // the least that is allowed
	offset     = 500 * time.Millisecond // of a node's clock, to either side
	stepBack   = 900 * time.Millisecond // at most, of a node's clock in one run
	bucket     = 1050 * time.Millisecond
)

// setting draws one.
func (p *Profile) setting(d dice) Setting {
	draw := func(n uint64) float64 { return d.draw(ofSetting, n) }
	s := Setting{
		Nodes:    []int{3, 3, 5, 5, 5, 4, 7}[d.below(7, ofSetting, 1)],
		Machines: 2 + d.below(3, ofSetting, 2),
		Workers:  1 + d.below(2, ofSetting, 3),
		Names:    1,
		TTL:      []time.Duration{100, 200, 400}[d.below(3, ofSetting, 4)] * time.Millisecond,
		Way:      []time.Duration{200, 1000, 5000}[d.below(3, ofSetting, 5)] * time.Microsecond,
		Fenced:   draw(6) < .75,
		Renewed:  draw(7) < .6,
	}
	if p.Unfenced {
		s.Fenced = false
	}
	if draw(8) < .2 {
		s.Names = 2
	}
	s.Timeout = max(s.TTL/4, 50*time.Millisecond)
	s.Length = 8 * s.TTL
	if p.Guarded {
		s.Guard = s.TTL
		if s.Fenced = draw(6) < .3; s.Fenced {
			s.Guard = max(s.TTL, clockBound+2*offset+stepBack+bucket)
		}
		s.Length += s.Guard + s.Length/2
	}
	rate := func(n uint64) float64 {
		if p.TrueClocks {
			return 1
		}
		// The ends of what is allowed are where it breaks.
		return 1 + drift/2*[]float64{-1, -1, 0, 1, 1, 2*draw(n) - 1}[d.below(6, ofSetting, n, 1)]
	}
	for i := range uint64(s.Nodes) {
		s.NodeRates = append(s.NodeRates, rate(100+i))
		s.NodeOffsets = append(s.NodeOffsets, d.between(-offset, offset, ofSetting, 200+i))
	}
	for i := range uint64(s.Machines) {
		s.MachineRates = append(s.MachineRates, rate(300+i))
		s.MachineOffsets = append(s.MachineOffsets, d.between(-2*offset, 2*offset, ofSetting, 400+i))
	}
	return s
}

// options are those of the clients, but for what is a machine's own.
func (s *Setting) options() []redlock.Option {
	opts := []redlock.Option{
		redlock.WithTTL(s.TTL), redlock.WithNodeTimeout(s.Timeout),
		redlock.WithDrift(redlock.Drift{Factor: drift, Floor: 2 * time.Millisecond}),
		redlock.WithClockBound(clockBound),
	}
	if !s.Fenced {
		opts = append(opts, redlock.WithoutFencing())
	}
	if !s.Renewed {
		opts = append(opts, redlock.WithoutRenewal())
	}
	if s.Guard > 0 {
		opts = append(opts, redlock.WithCrashGuard(s.Guard))
	}
	return opts
}

func (s *Setting) String() string {
	var also []string
	for what, is := range map[string]bool{"fenced": s.Fenced, "renewed": s.Renewed, fmt.Sprintf("crash guard %v", s.Guard): s.Guard > 0} {
		if is {
			also = append(also, what)
		}
	}
	slices.Sort(also)
	return fmt.Sprintf("%d nodes, %d machines with %d workers each, %d names, TTL %v, node timeout %v, way %v, %s",
		s.Nodes, s.Machines, s.Workers, s.Names, s.TTL, s.Timeout, s.Way, strings.Join(also, ", "))
}
