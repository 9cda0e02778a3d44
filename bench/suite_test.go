// The suite: what it measures, and that it does.

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"

	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

func TestSuiteFlags(t *testing.T) {
	t.Parallel()
	code, _, log := program(t, "-suite", "-n", "3", "-delay", "1ms", "-out", filepath.Join(t.TempDir(), "out"))
	if code != exitUsage || !strings.Contains(log, "-suite with -n: ") || !strings.Contains(log, "-suite with -delay: ") {
		t.Errorf("exit code %d, %s", code, log)
	}
	for only, want := range map[string]string{"[": "-only [: error parsing", "zoo": "-only zoo: nothing"} {
		if code, _, log := program(t, "-suite", "-only", only); code != exitUsage || !strings.Contains(log, want) {
			t.Errorf("exit code %d, %s", code, log)
		}
	}
	if code, _, log := program(t, "-only", "held"); code != exitUsage || !strings.Contains(log, "needs -suite") {
		t.Errorf("exit code %d, %s", code, log)
	}
	c, err := parseConfig([]string{"-suite", "-peers", "default,alternatives"}, func(string) string { return "" }, nil)
	if err != nil || c.start != startServers || c.n != mostNodes || c.setup.Nodes != suiteNodes {
		t.Errorf("%+v, %v", c, err)
	}
	seen := make(map[result.Situation]bool)
	for _, s := range c.situations() {
		if seen[s] {
			t.Errorf("%v is there twice", s)
		}
		seen[s] = true
		first := false
		for _, p := range c.peers {
			first = first || c.wants(0, s, p)
			if c.wants(1, s, p) && !c.wants(0, s, p) {
				t.Errorf("%s is measured in %v, but not in the first round", p.Name, s)
			}
		}
		if !first {
			t.Errorf("nobody is measured in %v", s)
		}
	}
	for _, f := range []result.Fault{result.Slow, result.Dead, result.Silent} {
		if !seen[result.Situation{Kind: result.Lock, Callers: 512, Fault: f}] {
			t.Errorf("512 callers are not measured with one node %s", f)
		}
	}
	for n := 1; n <= mostNodes; n++ {
		if n != suiteNodes && !seen[result.Situation{Kind: result.Lock, Callers: 128, Nodes: n}] {
			t.Errorf("%d nodes are not measured", n)
		}
	}
	if d := c.delaysOf(result.Situation{Fault: result.Slow}); len(d) != suiteNodes || d[suiteNodes-1] != slowBy || d[0] != 0 {
		t.Errorf("delays with a slow node: %v", d)
	}
}

// TestSuiteSituations measures what only a suite has, for a moment.
func TestSuiteSituations(t *testing.T) {
	t.Parallel()
	redisproc.Need(t)
	conf, err := parseConfig([]string{"-suite", "-duration", "10ms", "-warmup", "1ms", "-rounds", "1", "-ttl", "1s", "-peers", "redlock", "-out", t.TempDir()},
		func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	lock := func(s result.Situation) result.Situation {
		s.Kind, s.Callers = result.Lock, 2
		return s
	}
	conf.instead = []result.Situation{
		lock(result.Situation{Fault: result.Silent}),
		lock(result.Situation{Fault: result.Dead}),
		lock(result.Situation{Fault: result.Slow}),
		lock(result.Situation{Nodes: mostNodes}),
		lock(result.Situation{Nodes: 1, Names: 300}),
		{Kind: result.Held, Callers: 20},
	}
	var out, log strings.Builder
	if err := run(t.Context(), conf, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	r := read(t, conf.out)
	var memory int64
	for _, s := range conf.instead {
		c := r.Find("redlock", s)
		if c == nil || c.Cycles() == 0 {
			t.Errorf("%v was not measured", s)
			continue
		}
		if n := c.Errors(); n > 0 { // the machine may be busy
			t.Logf("%v: %d calls failed, the first with %s", s, n, c.FirstError())
		}
		u := c.Rounds[0].Usage
		if u.Connections == 0 {
			t.Errorf("%v: no connections", s)
		}
		memory = max(memory, u.Memory) // in one or the other more was freed than is kept
		if s.Names > 0 && c.Cycles()+c.Errors() < int64(s.Names) {
			t.Errorf("of %d names only %d had their turn", s.Names, c.Cycles())
		}
		if left := c.Rounds[0].Least; s.Kind == result.Held && (c.Rounds[0].Lost > 0 || left <= 0 || left > time.Second || c.Cycles() != 20) {
			t.Errorf("leases held: %+v", c.Rounds[0])
		}
	}
	if memory == 0 {
		t.Error("clients took no memory")
	}
}

func TestNotRenewed(t *testing.T) {
	t.Parallel()
	s := &slot{peer: peer.Peer{Name: "x"}, situation: result.Situation{Kind: result.Held, Callers: 1}}
	if err := s.canMeasure(); err == nil {
		t.Error("a peer that renews nothing is asked to hold leases")
	}
}
