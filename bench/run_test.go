// Whole runs on embedded nodes: what is measured, and what is kept when something
// fails.

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// short is a run that measures everything, but only for a moment.
func short(t *testing.T, more ...string) (args []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	args = []string{
		"-n", "3", "-duration", "20ms", "-warmup", "5ms", "-rounds", "2", "-callers", "1,4",
		"-delay-sweep", "0,2ms", "-out", dir,
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

func TestDeadNodes(t *testing.T) {
	t.Parallel()
	const dead = "127.0.0.1:1"
	_, list := own(t, 2)

	args, dir := onOwn(t, dead+",127.0.0.1:2,"+list[:strings.Index(list, ",")])
	code, out, log := program(t, args...)
	if code != exitFailed || out != "" || !strings.Contains(log, "1 of 3 nodes answer, a quorum is 2") || !strings.Contains(log, "node 1 ("+dead+")") {
		t.Errorf("no quorum: exit code %d, standard output %q\n%s", code, out, log)
	}
	if _, err := os.Stat(filepath.Join(dir, jsonFile)); err == nil {
		t.Error("a result was written of nothing")
	}

	args, _ = onOwn(t, list+","+dead)
	code, _, log = program(t, args...)
	if code != exitFailed || !strings.Contains(log, "node 3 ("+dead+") does not answer") || !strings.Contains(log, "-allow-dead") {
		t.Errorf("one dead: exit code %d\n%s", code, log)
	}

	args, dir = onOwn(t, list+","+dead, "-allow-dead", "-measure", "lock", "-peers", "redlock,redsync,floor")
	if code, _, log = program(t, args...); code != exitOK {
		t.Fatalf("allowed: exit code %d\n%s", code, log)
	}
	r := read(t, dir)
	if len(r.Nodes) != 3 || !r.Nodes[2].Dead || r.Nodes[0].Dead {
		t.Errorf("nodes are %+v", r.Nodes)
	}
	if len(r.Cells) != 3 || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], dead) {
		t.Errorf("%d cells, notes %q", len(r.Cells), r.Notes)
	}
}

// A fake is a peer for tests.
type fake struct{ open, lock func(context.Context) error }

func (f fake) peer(name string) peer.Peer {
	return peer.Peer{Name: name, Waits: true, Extends: true, Open: func(ctx context.Context, _ peer.Env) (peer.Session, error) {
		if f.open != nil {
			if err := f.open(ctx); err != nil {
				return nil, err
			}
		}
		return f, nil
	}}
}

func (f fake) Locker(string) (peer.Locker, error) { return f, nil }
func (f fake) Close() error                       { return nil }
func (f fake) Extend(context.Context) error       { return nil }
func (f fake) Unlock(context.Context) error       { return nil }

func (f fake) Lock(ctx context.Context) error {
	if f.lock == nil {
		time.Sleep(time.Millisecond)
		return nil
	}
	return f.lock(ctx)
}

// with runs peers on embedded nodes.
func with(ctx context.Context, t *testing.T, peers []peer.Peer, more ...string) (r *result.Result, log string, err error) {
	t.Helper()
	args, dir := short(t, append([]string{"-measure", "lock", "-callers", "1", "-delay-sweep", ""}, more...)...)
	conf, err := parseConfig(args, os.Getenv, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf.peers = peers
	conf.patience = patience{call: 200 * time.Millisecond, grace: 50 * time.Millisecond}
	var out, progress bytes.Buffer
	err = run(ctx, conf, &out, &progress)
	if _, statErr := os.Stat(filepath.Join(dir, htmlFile)); statErr != nil {
		t.Error("no report:", statErr)
	}
	return read(t, dir), progress.String(), err
}

// TestPeersThatFail wants to hear of each, and to keep what the others did.
func TestPeersThatFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("it is broken")
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	calls := 0
	for name, test := range map[string]struct {
		bad      fake
		want     string
		failures int // in two rounds
		kept     bool
	}{
		"open":  {fake{open: func(context.Context) error { return broken }}, "open: it is broken", 2, false},
		"lock":  {fake{lock: func(context.Context) error { return broken }}, "nothing succeeded while warming up: it is broken", 2, false},
		"stuck": {fake{lock: func(context.Context) error { <-stuck; return nil }}, "calls do not return", 1, false},
		"slow":  {fake{lock: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, "context deadline exceeded", 2, false},
		"at times": {fake{lock: func(context.Context) error {
			if calls++; calls%3 == 2 {
				return broken
			}
			return nil
		}}, "", 0, true},
	} {
		r, log, err := with(t.Context(), t, []peer.Peer{test.bad.peer("bad"), fake{}.peer("good")})
		if len(r.Failures) != test.failures || (test.failures > 0) != (err != nil) {
			t.Errorf("%s: failures %+v, error %v", name, r.Failures, err)
		}
		for _, f := range r.Failures {
			if f.Peer != "bad" || !strings.Contains(f.Error, test.want) || !strings.Contains(log, test.want) {
				t.Errorf("%s: failure %+v, log:\n%s", name, f, log)
			}
		}
		s := result.Situation{Kind: result.Lock, Callers: 1}
		if c := r.Find("good", s); c == nil || len(c.Rounds) != 2 {
			t.Errorf("%s: what the other peer did is lost: %+v", name, c)
		}
		c := r.Find("bad", s)
		if (c != nil) != test.kept {
			t.Errorf("%s: %+v was kept", name, c)
		}
		if test.kept && (c.Errors() == 0 || c.FirstError() != broken.Error()) {
			t.Errorf("%s: %d errors, the first %q", name, c.Errors(), c.FirstError())
		}
	}
}
