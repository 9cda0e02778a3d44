// One peer in one situation.

package result

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Kind is what is measured.
type Kind string

// The kinds.
const (
	Lock     Kind = "lock"     // lock, hold, unlock
	Extend   Kind = "extend"   // one lease, extended again and again
	HandOver Kind = "handover" // from an Unlock to the return of the next one's Lock
	PerNode  Kind = "nodes"    // lock and unlock, with a look at every single node
	Held     Kind = "held"     // leases that are held and renewed, for longer than their TTL
)

// A Fault is what one of the nodes suffers from during a measurement.
type Fault string

// The faults.
const (
	Slow   Fault = "slow"   // each answer comes 100 ms late
	Dead   Fault = "dead"   // the process is gone, and connections are refused
	Silent Fault = "silent" // connections are accepted, and nothing is answered
)

// Kinds are those that can be asked for one by one.
var Kinds = []Kind{Lock, Extend, HandOver, PerNode}

// A Situation is what the peers are compared in. It can be compared itself.
type Situation struct {
	Kind    Kind   `json:"kind"`
	Callers int    `json:"callers"`
	Network string `json:"network"` // the delay of each node, as it was asked for; "" for none

	// RTT is what is added to a round trip to each node, if it is the same for
	// all of them and belongs to a series of such delays.
	RTT   time.Duration `json:"rtt_ns,omitempty"`
	Sweep bool          `json:"sweep,omitempty"`

	Nodes int   `json:"nodes,omitempty"` // that take part, if they are not as many as the setup says
	Names int   `json:"names,omitempty"` // that all callers go through together; 0: each has its own
	Fault Fault `json:"fault,omitempty"`
}

func (s Situation) String() string {
	text := fmt.Sprintf("%s callers=%d", s.Kind, s.Callers)
	if s.Network != "" {
		text += " delay=" + s.Network
	}
	if s.Nodes > 0 {
		text += fmt.Sprintf(" n=%d", s.Nodes)
	}
	if s.Names > 0 {
		text += fmt.Sprintf(" names=%d", s.Names)
	}
	if s.Fault != "" {
		text += " fault=" + string(s.Fault)
	}
	return text
}

// A Cell is what was measured of one peer in one situation.
type Cell struct {
	Peer string `json:"peer"`
	Situation
	Rounds []Round `json:"rounds"`
}

// A Round is one measurement. The peers take turns in each round.
type Round struct {
	Took       time.Duration                 `json:"took_ns"`
	Cycles     int64                         `json:"cycles"` // of lock and unlock, extensions, or hand-overs
	Errors     int64                         `json:"errors"`
	FirstError string                        `json:"first_error,omitempty"`
	Ops        map[string]*Series            `json:"ops"`
	Nodes      map[string]map[string]*Series `json:"nodes,omitempty"` // by node and what was asked of it
	Usage      Usage                         `json:"usage"`

	// Of leases that were held: those that were lost, and the shortest time that any
	// of them had left.
	Lost  int64         `json:"lost,omitempty"`
	Least time.Duration `json:"least_left_ns,omitempty"`
}

// Usage is what a round took of the machines. What could not be read is absent.
type Usage struct {
	Allocs     uint64        `json:"allocs"`
	AllocBytes uint64        `json:"alloc_bytes"`
	ClientCPU  time.Duration `json:"client_cpu_ns,omitempty"`
	Commands   int64         `json:"commands,omitempty"` // that the nodes executed, those inside scripts included
	NodeCPU    time.Duration `json:"node_cpu_ns,omitempty"`
	BytesIn    int64         `json:"bytes_in,omitempty"` // that the nodes received
	BytesOut   int64         `json:"bytes_out,omitempty"`

	// What the clients of a lock took, not by cycle: goroutines at most, beside the
	// callers; connections that were open at the end, of all nodes together; and
	// memory that was still reachable then.
	Goroutines  int64 `json:"goroutines,omitempty"`
	Connections int64 `json:"connections,omitempty"`
	Memory      int64 `json:"memory,omitempty"`
}

// Set puts the measurement of a round, counted from 0, in its place.
func (c *Cell) Set(round int, r Round) {
	for len(c.Rounds) <= round {
		c.Rounds = append(c.Rounds, Round{})
	}
	c.Rounds[round] = r
}

// Op returns what all rounds recorded of an operation.
func (c *Cell) Op(op string) *Series {
	var all Series
	for _, r := range c.Rounds {
		if s := r.Ops[op]; s != nil {
			all.Add(s)
		}
	}
	return &all
}

// Ops are the operations of a cell, in order.
func (c *Cell) Ops() []string {
	seen := make(map[string]bool)
	for _, r := range c.Rounds {
		for op := range r.Ops {
			seen[op] = true
		}
	}
	var all []string
	for _, op := range []string{"lock", "unlock", "cycle", "extend", "handover"} {
		if seen[op] {
			all = append(all, op)
		}
	}
	return all
}

// PerNode returns what all rounds recorded of an operation on a node.
func (c *Cell) PerNode(node, op string) *Series {
	var all Series
	for _, r := range c.Rounds {
		if s := r.Nodes[node][op]; s != nil {
			all.Add(s)
		}
	}
	return &all
}

// Cycles and Errors are those of all rounds.
func (c *Cell) Cycles() (n int64) {
	for _, r := range c.Rounds {
		n += r.Cycles
	}
	return n
}

// Errors are the calls that failed, of all rounds.
func (c *Cell) Errors() (n int64) {
	for _, r := range c.Rounds {
		n += r.Errors
	}
	return n
}

// FirstError is the first error of all rounds.
func (c *Cell) FirstError() string {
	for _, r := range c.Rounds {
		if r.FirstError != "" {
			return r.FirstError
		}
	}
	return ""
}

// Throughput is the number of cycles per second.
func (c *Cell) Throughput() float64 {
	var took time.Duration
	for _, r := range c.Rounds {
		took += r.Took
	}
	if took <= 0 {
		return 0
	}
	return float64(c.Cycles()) / took.Seconds()
}

// PerCycle is what a cycle took of something; false if it was never read.
func (c *Cell) PerCycle(of func(Usage) float64) (float64, bool) {
	var sum float64
	for _, r := range c.Rounds {
		sum += of(r.Usage)
	}
	if n := c.Cycles(); n > 0 && sum > 0 {
		return sum / float64(n), true
	}
	return 0, false
}

// Most is the largest value of all rounds.
func (c *Cell) Most(of func(Round) int64) int64 {
	var most int64
	for _, r := range c.Rounds {
		most = max(most, of(r))
	}
	return most
}

// A Ratio is a quotient between two peers: of each round, since only what was
// measured at the same time can be compared, and of these the median.
type Ratio struct{ Median, Low, High float64 }

// LatencyRatio is c's median latency by base's. False if there is nothing to compare.
func (c *Cell) LatencyRatio(base *Cell, op string) (Ratio, bool) { return c.RatioAt(base, op, 50) }

// RatioAt is the quotient of a percentile of both.
func (c *Cell) RatioAt(base *Cell, op string, percentile float64) (Ratio, bool) {
	return c.ratio(base, func(r Round) float64 {
		if s := r.Ops[op]; s != nil {
			return float64(s.At(percentile))
		}
		return 0
	})
}

// ThroughputRatio is c's throughput by base's.
func (c *Cell) ThroughputRatio(base *Cell) (Ratio, bool) {
	return c.ratio(base, func(r Round) float64 {
		if r.Took <= 0 {
			return 0
		}
		return float64(r.Cycles) / r.Took.Seconds()
	})
}

func (c *Cell) ratio(base *Cell, of func(Round) float64) (Ratio, bool) {
	if base == nil {
		return Ratio{}, false
	}
	var all []float64
	for i, r := range c.Rounds {
		// A round that one of them missed is empty, so the others stay side by side.
		if i >= len(base.Rounds) {
			break
		}
		if a, b := of(r), of(base.Rounds[i]); a > 0 && b > 0 {
			all = append(all, a/b)
		}
	}
	if len(all) == 0 {
		return Ratio{}, false
	}
	slices.Sort(all)
	mid := all[len(all)/2]
	if len(all)%2 == 0 {
		mid = (mid + all[len(all)/2-1]) / 2
	}
	return Ratio{mid, all[0], all[len(all)-1]}, true
}

// NetworkName is how delays are written in a Situation.
func NetworkName(delays []time.Duration) string {
	all := make([]string, len(delays))
	for i, d := range delays {
		all[i] = d.String()
	}
	if same := slices.Compact(slices.Clone(all)); len(same) == 1 {
		return same[0]
	}
	return strings.Join(all, ",")
}
