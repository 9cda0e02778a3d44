// What a run consists of.

package result

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Schema is the version of the JSON. A change that old readers would misread
// raises it.
const Schema = 1

// A Result is one run, or what was measured until it was interrupted.
type Result struct {
	Schema      int           `json:"schema"`
	Started     time.Time     `json:"started"`
	Took        time.Duration `json:"took_ns"`
	Interrupted bool          `json:"interrupted"`
	Args        []string      `json:"args"`             // without passwords
	Commit      string        `json:"commit,omitempty"` // of the program, where Git knows
	Setup       Setup         `json:"setup"`
	Machine     Machine       `json:"machine"`
	Nodes       []Node        `json:"nodes"`
	Peers       []Peer        `json:"peers"`
	Cells       []*Cell       `json:"cells"`
	Failures    []Failure     `json:"failures"`
	Notes       []string      `json:"notes"` // what a reader of the figures should know
}

// Setup is what all measurements of a run have in common.
type Setup struct {
	TTL        time.Duration `json:"ttl_ns"`
	Hold       time.Duration `json:"hold_ns"`
	Nodes      int           `json:"nodes"`      // that a lock is on, if a situation says nothing else
	Names      int           `json:"names"`      // that a caller takes in turn
	Contention int           `json:"contention"` // callers that share names
	Duration   time.Duration `json:"duration_ns"`
	WarmUp     time.Duration `json:"warm_up_ns"`
	Rounds     int           `json:"rounds"`
	Suite      bool          `json:"suite,omitempty"`
}

// Machine is where the callers ran.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPU        string `json:"cpu,omitempty"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	Go         string `json:"go"`
	Load       string `json:"load,omitempty"` // the system's load average when the run began
}

// Node is one Redis node.
type Node struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"` // "embedded", "server", "container" or "own"
	Version string `json:"version,omitempty"`
	Dead    bool   `json:"dead,omitempty"`
}

// Peer is a library, or what it is compared with.
type Peer struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// Failure is a measurement that could not be made.
type Failure struct {
	Peer  string `json:"peer"`
	Cell  string `json:"cell"`
	Round int    `json:"round"` // from 1
	Error string `json:"error"`
}

// Write writes r as JSON.
func (r *Result) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// Read reads what Write wrote.
func Read(r io.Reader) (*Result, error) {
	var read Result
	if err := json.NewDecoder(r).Decode(&read); err != nil {
		return nil, fmt.Errorf("no result of a benchmark: %w", err)
	}
	if read.Schema != Schema {
		return nil, fmt.Errorf("result of schema %d: this program reads %d", read.Schema, Schema)
	}
	for i, c := range read.Cells {
		if c == nil {
			return nil, fmt.Errorf("no result of a benchmark: cell %d is null", i)
		}
	}
	return &read, nil
}

// Cell returns the cell of a peer, made if it is not there.
func (r *Result) Cell(peer string, s Situation) *Cell {
	if c := r.Find(peer, s); c != nil {
		return c
	}
	c := &Cell{Peer: peer, Situation: s}
	r.Cells = append(r.Cells, c)
	return c
}

// Find returns the cell of a peer, or nil.
func (r *Result) Find(peer string, s Situation) *Cell {
	for _, c := range r.Cells {
		if c.Peer == peer && c.Situation == s {
			return c
		}
	}
	return nil
}

// Situations are those of the cells, each once, in their order.
func (r *Result) Situations() []Situation {
	var all []Situation
	seen := make(map[Situation]bool)
	for _, c := range r.Cells {
		if !seen[c.Situation] {
			seen[c.Situation] = true
			all = append(all, c.Situation)
		}
	}
	return all
}

// Err tells that something failed; nil if nothing did.
func (r *Result) Err() error {
	if len(r.Failures) == 0 {
		return nil
	}
	f := r.Failures[0]
	first := fmt.Errorf("%s, %s, round %d: %s", f.Peer, f.Cell, f.Round, f.Error)
	if len(r.Failures) == 1 {
		return first
	}
	return fmt.Errorf("%d measurements failed, the first: %w", len(r.Failures), first)
}
