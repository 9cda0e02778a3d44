// What Check tells about server clocks, and about servers that drop keys.

package integration_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

var offText = regexp.MustCompile(`^its clock is (\S+) off those of the others$`)

// TestClockCheck: a clock that differs from the median is named, with how much, and
// is worse than a notice once it is beyond the clock bound. If the clocks of a
// majority are off, they are the median.
func TestClockCheck(t *testing.T) {
	t.Parallel()
	f := startClocks(t)
	for _, c := range []struct {
		off   time.Duration
		nodes []int
		opt   redlock.Option
		found []string // nodes
		by    time.Duration
		want  redlock.Severity
	}{
		{0, nil, asItIs, nil, 0, 0},
		{500 * time.Millisecond, []int{3}, asItIs, nil, 0, 0},
		{6 * time.Second, []int{3}, asItIs, []string{"node-3"}, 6 * time.Second, redlock.Notice},
		{time.Hour, []int{3}, asItIs, []string{"node-3"}, time.Hour, redlock.Warning},
		{-time.Hour, []int{1, 4}, asItIs, []string{"node-1", "node-4"}, -time.Hour, redlock.Warning},
		{-time.Hour, []int{3}, redlock.WithoutFencing(), []string{"node-3"}, -time.Hour, redlock.Notice},
		{time.Hour, []int{0, 1, 2}, asItIs, []string{"node-3", "node-4"}, -time.Hour, redlock.Warning},
		{time.Hour, []int{0, 1, 2, 3, 4}, asItIs, nil, 0, 0}, // of themselves they are right
	} {
		t.Run(fmt.Sprintf("%v on %v, want %v", c.off, c.nodes, c.want), func(t *testing.T) {
			f := f.in(t)
			client := f.open([]redlock.Option{c.opt})
			f.set(c.off, c.nodes...)
			r, err := client.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, finding := range r.Findings {
				if !strings.Contains(finding.Problem, "clock") {
					continue // that these servers keep nothing over a restart
				}
				t.Log(finding)
				found = append(found, finding.Node)
				m := offText.FindStringSubmatch(finding.Problem)
				if m == nil || finding.Severity != c.want {
					t.Fatalf("a %v: %q, want a %v", finding.Severity, finding.Problem, c.want)
				}
				if by, err := time.ParseDuration(m[1]); err != nil || (by-c.by).Abs() > 500*time.Millisecond {
					t.Errorf("it is %v off, %v, want %v", by, err, c.by)
				}
			}
			if !slices.Equal(found, c.found) {
				t.Errorf("found of the nodes %q, want %q", found, c.found)
			}
		})
	}
}

// TestEviction: a server that drops keys when its memory is full drops locks, and
// one such server is enough where a bare quorum is held. Check warns of it.
func TestEviction(t *testing.T) {
	t.Parallel()
	f := startClocks(t)
	const name = "evicted"
	opts := []redlock.Option{redlock.WithTTL(20 * time.Second), redlock.WithoutRenewal()}
	client := f.open(opts)
	a := f.lock(mutexOf(t, f.open(opts, 0, 1, 2), name))
	f.settled(a, 3)
	f.refuses(mutexOf(t, client, name), redlock.ErrTaken)

	do := func(args ...string) (string, error) { return f.servers[0].Do(args...) }
	warned := func() bool {
		r, err := client.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(r.Findings, func(f redlock.Finding) bool {
			return f.Severity == redlock.Warning && f.Node == "node-0" && strings.Contains(f.Problem, "(volatile-lru)")
		})
	}
	if warned() {
		t.Error("there was a warning before")
	}
	for _, args := range [][]string{
		{"SET", "data", strings.Repeat("x", 1<<20)}, // which does not expire
		{"CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "volatile-lru"},
	} {
		if _, err := do(args...); err != nil {
			t.Fatal(err)
		}
	}
	_, err := do("SET", "more", "data") // is refused, but not before there is nothing left to drop
	if err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Errorf("a server that is full answered %v", err)
	}
	if nodes, _ := f.on(a); !slices.Equal(nodes, []int{1, 2}) {
		t.Fatalf("the lease is on the nodes %v", nodes)
	}
	t.Logf("left on the server that is full: %q", f.servers[0].Keys())
	// As long as it is full, nobody can take the lock there.
	f.refuses(mutexOf(t, client, name), redlock.ErrNoQuorum)
	if _, err := do("CONFIG", "SET", "maxmemory", "100mb"); err != nil {
		t.Fatal(err)
	}
	if !warned() {
		t.Error("Check does not warn of the server that drops keys")
	}
	b, err := mutexOf(t, client, name).TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.Err() != nil {
		t.Fatalf("not two holders: %v", a.Err())
	}
	t.Logf("TWO HOLDERS, fencing tokens %d and %d", a.FencingToken(), b.FencingToken())
	f.unlock(b)
}
