// Callers at work for a given time.

package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// pass lets all callers work for d, and each at least once, and waits until the
// last has finished. It returns how long that took. All that was begun counts:
// to leave out what is unfinished at the end would leave out the slowest.
func (s *slot) pass(ctx context.Context, crew []*caller, d time.Duration) (time.Duration, error) {
	if s.situation.Kind == result.Held {
		return s.holdAll(ctx, crew, d)
	}
	ctx, cancel := context.WithTimeout(ctx, d+s.patience.call+s.extra())
	defer cancel()
	var over atomic.Bool
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()

	work := s.cycles
	switch s.situation.Kind {
	case result.Extend:
		work = s.extensions
	case result.HandOver:
		work = s.handOvers(ctx, &over)
	}
	var cycles atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for _, c := range crew {
		wg.Go(func() { cycles.Add(work(ctx, c, &over)) })
	}
	if !returns(ctx, &wg, s.patience.grace) {
		return 0, errStuck
	}
	took := time.Since(start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round.Cycles += cycles.Load()
	return took, nil
}

// returns waits for wg, but not for long after ctx has ended.
func returns(ctx context.Context, wg *sync.WaitGroup, grace time.Duration) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(grace):
		return false
	}
}

// cycles locks, holds and unlocks, and returns how often that succeeded.
func (s *slot) cycles(ctx context.Context, c *caller, over *atomic.Bool) (n int64) {
	lock, unlock, cycle := s.record("lock"), s.record("unlock"), s.record("cycle")
	for first := true; (first || !over.Load() || s.namesLeft()) && ctx.Err() == nil; first = false {
		start := time.Now()
		l, err := s.locker(c)
		if err == nil {
			err = l.Lock(ctx)
		}
		if err != nil {
			s.failed(ctx, err)
			continue
		}
		locked := time.Since(start)
		lock.Record(locked)
		hold(ctx, s.setup.Hold)
		start = time.Now()
		if err := l.Unlock(ctx); err != nil {
			s.failed(ctx, err)
			continue
		}
		unlocked := time.Since(start)
		unlock.Record(unlocked)
		cycle.Record(locked + unlocked)
		n++
	}
	return n
}

// locker is that of c's next cycle. Where all callers go through many names, it is
// made for the purpose, as a user would who cannot know them beforehand.
func (s *slot) locker(c *caller) (peer.Locker, error) {
	n := s.situation.Names
	if n == 0 {
		return c.locker(), nil
	}
	return c.session.Locker(s.name(0, int((s.turn.Add(1)-1)%int64(n))))
}

// namesLeft tells whether there are names that have not had their turn: all of them
// have one, however long that takes.
func (s *slot) namesLeft() bool {
	return s.recording.Load() && s.turn.Load() < int64(s.situation.Names)
}

// extra is how much longer than asked for a pass may take for that.
func (s *slot) extra() time.Duration { return time.Duration(s.situation.Names) * time.Millisecond }

// extensions extends one lease again and again.
func (s *slot) extensions(ctx context.Context, c *caller, over *atomic.Bool) (n int64) {
	l, extend := c.locker(), s.record("extend")
	if err := l.Lock(ctx); err != nil {
		s.failed(ctx, err)
		return 0
	}
	for first := true; (first || !over.Load()) && ctx.Err() == nil; first = false {
		start := time.Now()
		if err := l.Extend(ctx); err != nil {
			s.failed(ctx, err)
			continue
		}
		extend.Record(time.Since(start))
		n++
	}
	if err := l.Unlock(ctx); err != nil && ctx.Err() == nil {
		s.failed(ctx, err)
	}
	return n
}

// hold waits for d, or until ctx ends.
func hold(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// canMeasure tells why a peer is not measured in a situation; nil if it is.
func (s *slot) canMeasure() error {
	shared := s.situation.Kind == result.HandOver || s.situation.Kind != result.PerNode && s.setup.Contention > 1
	switch {
	case s.situation.Kind == result.Extend && !s.peer.Extends:
		return errors.New("its locks last until they are given up")
	case s.situation.Kind == result.Held && !s.peer.Renews:
		return errors.New("it renews nothing by itself")
	case s.situation.Kind == result.PerNode && !s.peer.Nodes:
		return errors.New("it does not tell how long each node took")
	case shared && !s.peer.Waits:
		return errors.New("it does not wait for a lock that is taken")
	case (s.situation.Network != "" || s.situation.Nodes > 0 || s.situation.Fault != "") && s.peer.Serve != nil:
		return errors.New("its servers are others")
	}
	return nil
}
