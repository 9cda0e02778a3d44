// Leases that are held: whether they are renewed in time, and what they cost.

package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/quorumlock/redlock/bench/internal/peer"
)

// holdAll is the pass of leases that are held. Warming up is to lock them all. Then
// they are held for longer than their TTL, so that those who are still there have
// been renewed.
func (s *slot) holdAll(ctx context.Context, crew []*caller, d time.Duration) (time.Duration, error) {
	if !s.recording.Load() {
		return 0, s.lockAll(ctx, crew)
	}
	const look = 100 * time.Millisecond
	start := time.Now()
	least, lost := time.Duration(math.MaxInt64), int64(0)
	for end := start.Add(max(d, s.setup.TTL+s.setup.TTL/5)); time.Now().Before(end) && ctx.Err() == nil; {
		hold(ctx, look)
		lost = 0
		for _, c := range crew {
			h, ok := c.lockers[0].(peer.Holder)
			switch {
			case !ok:
				return 0, fmt.Errorf("%s does not tell what it holds", s.peer.Name)
			case h.Lost():
				lost++
			default:
				least = min(least, h.Left())
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round.Cycles, s.round.Lost, s.round.Least = int64(len(crew))-lost, lost, max(least, 0)
	return time.Since(start), nil
}

// lockAll locks what each caller has, many at a time.
func (s *slot) lockAll(ctx context.Context, crew []*caller) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience.call)
	defer cancel()
	places := make(chan struct{}, 128)
	errs := make([]error, len(crew))
	var wg sync.WaitGroup
	for i, c := range crew {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs[i] = c.lockers[0].Lock(ctx)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the others say the same
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round.Cycles = int64(len(crew))
	return nil
}
