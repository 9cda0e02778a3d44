// What Check says, and how grave it is.

package redlock

import (
	"fmt"
	"slices"
	"strings"
)

// A Severity is how much a [Finding] matters.
type Severity int

const (
	// Notice is for what is good to know.
	Notice Severity = iota + 1
	// Warning is for what makes the lock unsafe, or stops it, when something
	// else goes wrong.
	Warning
	// Critical is for what makes the lock unsafe, or stops it, as things are.
	Critical
)

func (s Severity) String() string {
	switch s {
	case Notice:
		return "notice"
	case Warning:
		return "warning"
	case Critical:
		return "critical"
	default:
		return "none"
	}
}

// A Finding is one thing that [Client.Check] has found.
type Finding struct {
	Severity Severity
	Node     string // empty: of all nodes together
	Problem  string
	Advice   string

	_ struct{}
}

func (f Finding) String() string {
	where := ""
	if f.Node != "" {
		where = fmt.Sprintf(" node %q:", f.Node)
	}
	return fmt.Sprintf("%v:%s %s; %s", f.Severity, where, f.Problem, f.Advice)
}

// A Report is what [Client.Check] has found, the gravest first.
type Report struct {
	Findings []Finding

	_ struct{}
}

// Worst returns the gravest severity, and 0, which prints as "none", if there is no
// finding.
func (r *Report) Worst() Severity {
	if len(r.Findings) == 0 {
		return 0
	}
	return r.Findings[0].Severity
}

// String returns the findings, one on a line.
func (r *Report) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// Findings as they are collected.
type findings []finding

type finding struct {
	Finding

	about string // of its kind; the problem may have figures that change
	unfit bool   // the node has no vote under WithStrictNodes
}

// add returns the new finding, for more to be said of it.
func (r *findings) add(s Severity, node, problem, advice string) *finding {
	*r = append(*r, finding{Finding: Finding{Severity: s, Node: node, Problem: problem, Advice: advice}, about: problem})
	return &(*r)[len(*r)-1]
}

func (r findings) report() *Report {
	all := &Report{}
	for _, f := range r {
		all.Findings = append(all.Findings, f.Finding)
	}
	slices.SortStableFunc(all.Findings, func(a, b Finding) int { return int(b.Severity - a.Severity) })
	return all
}
