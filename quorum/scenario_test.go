// Runs the scenarios in testdata, and re-checks each in ways that need no
// knowledge of the right answer.

package quorum_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/quorum"
)

// A scenario is one case of a file in testdata.
type scenario struct {
	name        string
	nodes, need int
	votes       []bool
	want        []quorum.Outcome // after each vote
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := parseScenarios(string(text))
		if err != nil {
			t.Fatalf("%s:%v", file, err)
		}
		for _, s := range cases {
			sizes[s.nodes] = true
			t.Run(fmt.Sprintf("%s/%s", filepath.Base(file), s.name), s.run)
		}
	}
	for n := 1; n <= 7; n++ {
		if !sizes[n] {
			t.Errorf("no scenario has %d nodes", n)
		}
	}
}

func (s scenario) run(t *testing.T) {
	tally := quorum.NewTally(s.nodes, s.need)
	decided := 0 // the number of votes after which it was
	for i, v := range s.votes {
		got := vote(&tally, v)
		if got != s.want[i] {
			t.Errorf("vote %d: %v, want %v", i+1, got, s.want[i])
		}
		if decided == 0 && got != quorum.Pending {
			decided = i + 1
		}
	}
	counted := s.votes[:min(s.nodes, len(s.votes))]
	outcome := tally.Outcome()
	if t.Failed() {
		return
	}

	// The order of votes does not matter.
	sequences(len(counted), func(other []bool) {
		if count(other) != count(counted) {
			return // not the same votes
		}
		if got := final(s.nodes, s.need, other); got != outcome {
			t.Errorf("in the order %v: %v, want %v", other, got, outcome)
		}
	})

	// The opposite question, whether enough nodes refuse to prevent it, has the
	// opposite answer, and it is known at the same moment.
	if s.need <= s.nodes {
		opposite := quorum.NewTally(s.nodes, s.nodes-s.need+1)
		for i, v := range s.votes {
			got := vote(&opposite, !v)
			if want := map[quorum.Outcome]quorum.Outcome{
				quorum.Pending: quorum.Pending, quorum.Won: quorum.Lost, quorum.Lost: quorum.Won,
			}[s.want[i]]; got != want {
				t.Errorf("opposite after vote %d: %v, want %v", i+1, got, want)
			}
		}
	}

	// A vote the other way cannot hurt: one more Yes never turns a win, nor one
	// more No a loss.
	for i, v := range counted {
		changed := slices.Clone(counted)
		changed[i] = !v
		got := final(s.nodes, s.need, changed)
		if !v && outcome == quorum.Won && got != quorum.Won ||
			v && outcome == quorum.Lost && got != quorum.Lost {
			t.Errorf("with vote %d turned in its favour: %v, was %v", i+1, got, outcome)
		}
	}

	// Once it is decided, no sequence of further votes matters.
	if decided > 0 {
		sequences(s.nodes+1, func(further []bool) {
			if got := final(s.nodes, s.need, slices.Concat(s.votes[:decided], further)); got != outcome {
				t.Errorf("with further votes %v: %v, want %v", further, got, outcome)
			}
		})
	}
}

// count returns the number of votes in favour.
func count(votes []bool) int {
	n := 0
	for _, v := range votes {
		if v {
			n++
		}
	}
	return n
}

// parseScenarios reads the format that testdata/README.md describes. It knows
// no line that it may skip, so that a slip of the pen cannot turn off a case.
func parseScenarios(text string) ([]scenario, error) {
	outcomes := map[string]quorum.Outcome{"pending": quorum.Pending, "won": quorum.Won, "lost": quorum.Lost}
	var cases []scenario
	nodes := 0
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		fail := func(why string) ([]scenario, error) { return nil, fmt.Errorf("%d: %s: %q", i+1, why, line) }

		var size, blocking int
		if n, _ := fmt.Sscanf(line, "nodes %d quorum %d blocking %d", &nodes, &size, &blocking); n == 3 {
			if size != quorum.Size(nodes) || blocking != quorum.Blocking(nodes) {
				return fail("a wrong size")
			}
			continue
		}
		if name, ok := strings.CutPrefix(line, "case "); ok && nodes > 0 {
			cases = append(cases, scenario{name: strings.TrimSpace(name), nodes: nodes, need: quorum.Size(nodes)})
			continue
		}
		if len(cases) == 0 {
			return fail("outside a case")
		}
		s := &cases[len(cases)-1]
		if n, _ := fmt.Sscanf(line, "need %d", &s.need); n == 1 && len(s.votes) == 0 {
			continue
		}
		want, ok := outcomes[fields[len(fields)-1]]
		if !ok || len(fields) != 3 || fields[1] != "->" || fields[0] != "yes" && fields[0] != "no" {
			return fail("not a vote")
		}
		s.votes = append(s.votes, fields[0] == "yes")
		s.want = append(s.want, want)
	}
	for _, s := range cases {
		if len(s.votes) == 0 {
			return nil, fmt.Errorf("0: case %q has no votes", s.name)
		}
	}
	return cases, nil
}

func TestParseScenariosRefuses(t *testing.T) {
	for _, text := range []string{
		"yes -> won",
		"nodes 3 quorum 2 blocking 1",
		"nodes 4 quorum 2 blocking 2",
		"case before nodes",
		"nodes 1 quorum 1 blocking 1\ncase without votes",
		"nodes 1 quorum 1 blocking 1\ncase x\nyes won",
		"nodes 1 quorum 1 blocking 1\ncase x\nyes -> Won",
		"nodes 1 quorum 1 blocking 1\ncase x\nmaybe -> won",
		"nodes 1 quorum 1 blocking 1\ncase x\nyes -> won really",
		"nodes 1 quorum 1 blocking 1\ncase x\nyes -> won\nneed 1",
	} {
		if cases, err := parseScenarios(text); err == nil {
			t.Errorf("%q was read as %v", text, cases)
		}
	}
}
