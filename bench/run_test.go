// Whole runs on embedded nodes: everything is measured, and nothing is left behind.

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// short is a run that measures everything, but only for a moment.
func short(t *testing.T, more ...string) (args []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	args = []string{
		"-duration", "20ms", "-warmup", "5ms", "-rounds", "2", "-callers", "1,4",
		"-delay-sweep", "0,2ms", "-out", dir,
	}
	if !slices.Contains(more, "-redis") {
		args = append(args, "-n", "3")
	}
	return append(args, more...), dir
}

func read(t *testing.T, dir string) *result.Result {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, jsonFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := result.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	t.Parallel()
	args, dir := short(t)
	code, out, log := program(t, args...)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	r := read(t, dir)
	conf, err := parseConfig(args, os.Getenv, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range conf.situations() {
		for _, p := range conf.peers {
			c := r.Find(p.Name, s)
			if (&slot{peer: p, situation: s, setup: conf.setup}).canMeasure() != nil {
				if c != nil {
					t.Errorf("%s was measured in %s", p.Name, s)
				}
				continue
			}
			if c == nil || len(c.Rounds) != 2 || c.Cycles() == 0 || len(c.Ops()) == 0 || c.Errors() != 0 {
				t.Errorf("%s in %s: %+v", p.Name, s, c)
				continue
			}
			for _, op := range c.Ops() {
				if c.Op(op).Count() == 0 {
					t.Errorf("%s in %s: nothing is known of %s", p.Name, s, op)
				}
			}
			if n := len(c.Rounds[0].Nodes); s.Kind == result.PerNode && n != 3 {
				t.Errorf("%s: %d nodes were looked at", p.Name, n)
			}
		}
	}
	for _, file := range []string{htmlFile, "latency.svg", "throughput.svg", "delay.svg", "handover.svg"} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if !strings.Contains(out, "Hand-over among 2 clients") || !strings.Contains(log, "left] round 2 of 2") {
		t.Errorf("table:\n%s\nprogress:\n%s", out, log)
	}

	again := t.TempDir()
	code, out2, _ := program(t, "-from", filepath.Join(dir, jsonFile), "-out", again)
	if table, _, _ := strings.Cut(out, "\nwritten to "); code != exitOK || !strings.HasPrefix(out2, table) {
		t.Errorf("from JSON, exit code %d and another table:\n%s", code, out2)
	}
}

// own starts nodes and returns them as a user would name them.
func own(t *testing.T, n int) ([]*redis.Client, string) {
	t.Helper()
	set, err := nodes.Embedded(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	var addrs []string
	var clients []*redis.Client
	for _, o := range set.Options {
		addrs = append(addrs, o.Addr)
		c := redis.NewClient(&redis.Options{Addr: o.Addr})
		t.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	return clients, strings.Join(addrs, ",")
}

func onOwn(t *testing.T, list string, more ...string) (args []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	args = []string{"-redis", list, "-duration", "20ms", "-warmup", "5ms", "-rounds", "1", "-callers", "2", "-delay-sweep", "", "-out", dir}
	return append(args, more...), dir
}

// TestNothingLeft wants the user's nodes as they were.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	clients, list := own(t, 3)
	args, _ := onOwn(t, list)
	if code, _, log := program(t, args...); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	for i, c := range clients {
		if keys, err := c.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
			t.Errorf("node %d: %v, %v", i+1, keys, err)
		}
	}
}
