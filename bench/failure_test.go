// Nodes that are down and peers that fail: each is told of, and what was measured
// is kept.

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

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

// TestNodesGone stops the nodes in the midst of a run, which then ends, and keeps
// what it has.
func TestNodesGone(t *testing.T) {
	t.Parallel()
	set, err := nodes.Embedded(3)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() { set.Close() })
	t.Cleanup(stop)
	var addrs []string
	for _, o := range set.Options {
		addrs = append(addrs, o.Addr)
	}
	second := fake{open: func(context.Context) error {
		stop()
		return errors.New("no node")
	}}
	r, _, err := with(t.Context(), t, []peer.Peer{fake{}.peer("first"), second.peer("second")}, "-rounds", "1000", "-redis", strings.Join(addrs, ","))
	if err == nil || !strings.Contains(err.Error(), "the run ends early: 0 of 3 nodes answer") {
		t.Errorf("the error is %v", err)
	}
	if len(r.Failures) != 1 || r.Find("first", result.Situation{Kind: result.Lock, Callers: 1}) == nil {
		t.Errorf("failures %+v, cells %v", r.Failures, r.Cells)
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
