// Bad values end the program before it does anything, with an error that names
// flag and value.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/result"
)

// program runs the program in this process, and returns what it leaves to see.
func program(t *testing.T, args ...string) (code int, out, log string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = bench(t.Context(), args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args []string
		want []string // parts of what it complains
	}{
		{"unknown", []string{"-lock"}, []string{"-lock"}},
		{"argument", []string{"now"}, []string{`unexpected argument "now"`}},
		{"no number", []string{"-n", "five"}, []string{`"five"`, "-n"}},
		{"no nodes", []string{"-n", "0"}, []string{"-n 0: must be from 1 to 25"}},
		{"kind of nodes", []string{"-start", "cloud"}, []string{`-start "cloud": must be embedded, servers or containers`}},
		{"no address", []string{"-redis", "localhost"}, []string{`-redis: node 1 "localhost": want a redis:// URL or host:port`}},
		{"no port", []string{"-redis", "a:0"}, []string{`-redis: node 1 "a:0": port must be from 1`}},
		{"empty address", []string{"-redis", ""}, []string{`-redis: node 1 "": `}},
		{"scheme", []string{"-redis", "http://a:1"}, []string{`-redis: node 1 "http://a:1": `}},
		{"node twice", []string{"-redis", "a:1,redis://a:1"}, []string{`-redis: node 2 "a:1": is there twice`}},
		{"own and started nodes", []string{"-redis", "a:1", "-start", "servers"}, []string{"-redis with -start: "}},
		{"TTL", []string{"-ttl", "2"}, []string{`"2"`, "-ttl"}},
		{"short TTL", []string{"-ttl", "50ms"}, []string{"-ttl 50ms: must be from 100ms to 1h0m0s"}},
		{"broken TTL", []string{"-ttl", "1.0005s"}, []string{"-ttl 1.0005s: must be whole milliseconds"}},
		{"no callers", []string{"-callers", "1,0"}, []string{"-callers 0: must be from 1"}},
		{"many callers", []string{"-callers", "x"}, []string{`-callers "x": want whole numbers`}},
		{"callers twice", []string{"-callers", "2,2"}, []string{"-callers 2: is there twice"}},
		{"names", []string{"-names", "0"}, []string{"-names 0: must be from 1 to 1000"}},
		{"contention", []string{"-contention", "4", "-callers", "2"}, []string{"-contention 4: more than there are with -callers 2"}},
		{"no contention", []string{"-contention", "-1"}, []string{"-contention -1: must be from 1"}},
		{"hold", []string{"-hold", "6s"}, []string{"-hold 6s: must be from 0s to 5s"}},
		{"waiters", []string{"-waiters", "1"}, []string{"-waiters 1: must be from 2 to 100"}},
		{"delay", []string{"-delay", "far"}, []string{`-delay "far": want times`}},
		{"too few delays", []string{"-delay", "1ms,2ms"}, []string{"-delay 1ms,2ms: 2 delays for 5 nodes"}},
		{"negative delay", []string{"-delay", "-1ms"}, []string{"-delay -1ms: must be from 0s to 1m0s"}},
		{"delay on a socket", []string{"-redis", "unix:///run/redis.sock", "-delay", "1ms"}, []string{"-delay, -delay-sweep: node /run/redis.sock is a Unix socket"}},
		{"delay on TLS", []string{"-redis", "rediss://a:1", "-delay-sweep", "1ms"}, []string{"-delay, -delay-sweep: node a:1 uses TLS"}},
		{"duration", []string{"-duration", "1ms"}, []string{"-duration 1ms: must be from 10ms"}},
		{"warm-up", []string{"-warmup", "2m"}, []string{"-warmup 2m0s: must be from 0s to 1m0s"}},
		{"rounds", []string{"-rounds", "0"}, []string{"-rounds 0: must be from 1 to 1000"}},
		{"measure", []string{"-measure", "lock,all"}, []string{`-measure "all": must be of lock, extend`}},
		{"peer", []string{"-peers", "redsync,zoo"}, []string{`-peers "zoo": no such peer; there are redlock, `}},
		{"out", []string{"-out", ""}, []string{`-out "": must not be empty`}},
		{"two at once", []string{"-n", "0", "-rounds", "0"}, []string{"-n 0: ", "-rounds 0: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "out")
			args := test.args
			if test.name != "out" {
				args = append(args, "-out", dir)
			}
			if test.name == "argument" {
				args = []string{"-out", dir, "now"} // flags end at the first argument
			}
			code, out, log := program(t, args...)
			if code != exitUsage || out != "" {
				t.Errorf("exit code %d, standard output %q", code, out)
			}
			for _, part := range test.want {
				if !strings.Contains(log, part) {
					t.Errorf("the complaint lacks %q:\n%s", part, log)
				}
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("a folder was made")
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"redis://:s3cret@host:99999", "http://:s3cret@host:1", "redis://u:s3cret%@host:1"} {
		if code, _, log := program(t, "-redis", node); code != exitUsage || strings.Contains(log, "s3cret") {
			t.Errorf("%s: exit code %d, %s", node, code, log)
		}
	}
	c, err := parseConfig([]string{"-redis", "redis://u:s3cret@host:1,other:2"}, func(string) string { return "" }, nil)
	if text := strings.Join(c.args, " "); err != nil || strings.Contains(text, "s3cret") || !strings.Contains(text, "host:1,other:2") {
		t.Errorf("arguments to be shown: %s, %v", text, err)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	code, out, log := program(t, "-h")
	if code != exitOK || log != "" || !strings.Contains(out, "-delay-sweep") {
		t.Errorf("exit code %d, complaint %q, usage:\n%s", code, log, out)
	}
}

func TestSituations(t *testing.T) {
	t.Parallel()
	parse := func(args ...string) config {
		c, err := parseConfig(args, func(string) string { return "" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := parse("-callers", "2,8", "-delay", "1ms,2ms,3ms", "-n", "3", "-delay-sweep", "0,4ms", "-waiters", "3")
	want := []result.Situation{
		{Kind: result.Lock, Callers: 2, Network: "1ms,2ms,3ms"},
		{Kind: result.Lock, Callers: 8, Network: "1ms,2ms,3ms"},
		{Kind: result.Extend, Callers: 2, Network: "1ms,2ms,3ms"},
		{Kind: result.HandOver, Callers: 3, Network: "1ms,2ms,3ms"},
		{Kind: result.PerNode, Callers: 1, Network: "1ms,2ms,3ms"},
		{Kind: result.Lock, Callers: 2, Network: "0s", Sweep: true},
		{Kind: result.Lock, Callers: 2, Network: "4ms", RTT: 4 * time.Millisecond, Sweep: true},
	}
	got := c.situations()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("situation %d is %v, want %v", i, got[i], want[i])
		}
	}
	if d := c.delaysOf(got[6]); len(d) != 3 || d[2] != 4*time.Millisecond {
		t.Errorf("delays of the sweep: %v", d)
	}
	if c := parse("-redis", "unix:///run/redis.sock"); len(c.sweep) != 0 {
		t.Error("a socket has a sweep of delays that nobody asked for")
	}
	if c := parse("-measure", "extend", "-delay-sweep", ""); len(c.situations()) != 1 {
		t.Errorf("only extend, but %v", c.situations())
	}
}
