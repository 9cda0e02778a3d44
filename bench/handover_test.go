// What counts as a hand-over.

package main

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

func TestBaton(t *testing.T) {
	t.Parallel()
	b, first, second := &baton{}, &caller{}, &caller{}
	now := time.Now()
	if _, ok := b.take(first, now, now); ok {
		t.Error("the first holder has the lock from nobody")
	}
	taken := b.free()
	if _, ok := b.take(first, b.freed.Add(-time.Second), b.freed); ok {
		t.Error("a holder handed the lock over to itself")
	}
	select {
	case <-taken:
	default:
		t.Error("nobody is told that the lock was taken")
	}
	b.free()
	if _, ok := b.take(second, b.freed.Add(time.Second), b.freed.Add(2*time.Second)); ok {
		t.Error("who came after the unlock has not waited for it")
	}
	b.free()
	took, ok := b.take(first, b.freed.Add(-time.Second), b.freed.Add(3*time.Second))
	if !ok || took != 3*time.Second {
		t.Errorf("a hand-over of 3s took %v, %v", took, ok)
	}
}

// TestHandOvers passes a lock around whose every hand-over takes at least a while.
func TestHandOvers(t *testing.T) {
	t.Parallel()
	const while = 3 * time.Millisecond
	free := make(chan struct{}, 1)
	free <- struct{}{}
	lock := fake{lock: func(ctx context.Context) error {
		select {
		case <-free:
			time.Sleep(while)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	p := lock.peer("channel")
	open := p.Open
	p.Open = func(ctx context.Context, env peer.Env) (peer.Session, error) {
		_, err := open(ctx, env)
		return session{lock, free}, err
	}
	s := &slot{
		peer: p, situation: result.Situation{Kind: result.HandOver, Callers: 3}, set: nodes.Own(nil),
		setup: result.Setup{Duration: 200 * time.Millisecond}, patience: defaultPatience,
		name: func(int, int) string { return "name" },
	}
	r, err := s.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handOver := r.Ops["handover"]
	if n := handOver.Count(); n == 0 || n != r.Cycles || r.Errors != 0 {
		t.Errorf("%d hand-overs, %d cycles, %d errors", n, r.Cycles, r.Errors)
	}
	if fastest := handOver.At(0); fastest < while*9/10 {
		t.Errorf("a hand-over took %v, and can take no less than %v", fastest, while)
	}
}

// A session's Unlock frees a lock that is a channel.
type session struct {
	fake
	free chan struct{}
}

func (s session) Locker(string) (peer.Locker, error) { return s, nil }

func (s session) Unlock(context.Context) error {
	s.free <- struct{}{}
	return nil
}
