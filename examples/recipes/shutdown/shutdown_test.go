// SIGTERM to a real process: jobs finish, or end with the grace, and no lock is left.

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

func TestShutdown(t *testing.T) {
	t.Setenv(nodes.Env, "")
	program := nodes.Build(t)
	for _, c := range []struct {
		name, flags string
		want        string // of the jobs under way
	}{
		{"enough grace", "-work 2s -grace 1m -stop 1h", "error <nil>"},
		{"too little", "-work 1h -grace 300ms -stop 1h", errGrace.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := nodes.Open(ttl)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = set.Close() }()
			p := nodes.Start(t, program, set, strings.Fields(c.flags)...)
			for _, job := range []string{"1", "2", "3"} {
				p.Says("customer-"+job+": begun", time.Minute)
			}
			began := time.Now()
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := p.Ends(ttl / 2); code != 0 {
				t.Errorf("exit code %d", code)
			}
			t.Logf("ended %v after SIGTERM", time.Since(began).Round(time.Millisecond))
			ended, gaveUp := 0, 0
			for _, line := range p.Lines() {
				switch {
				case strings.Contains(line, "ended, "+c.want), strings.Contains(line, "ended, error "+c.want):
					ended++
				case strings.Contains(line, "ended, error redlock: lock"):
					gaveUp++
				}
			}
			if ended != 3 || gaveUp != 1 {
				t.Errorf("%d jobs ended with %q, %d waited no more", ended, c.want, gaveUp)
			}
			if keys := set.Locks(t.Context()); len(keys) > 0 {
				t.Errorf("left on the nodes: %q", keys)
			}
		})
	}
}
