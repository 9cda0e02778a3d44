// What is done once: charges, in memory.

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/redlock/fence"
)

// A store keeps one receipt for each order. Nothing but the lock keeps two charges for
// one order apart while the money is on its way, and the fence a charge of a holder of the
// past. (A payment service is outside: give it the order as its idempotency key.)
type store struct {
	takes time.Duration // a charge

	mu       sync.Mutex
	guard    fence.Memory
	receipts map[string]string
	charges  map[string]int
}

func newStore(takes time.Duration) *store {
	return &store{takes: takes, receipts: make(map[string]string), charges: make(map[string]int)}
}

// charge charges an order unless that is done, and returns the receipt.
func (s *store) charge(ctx context.Context, order string, token int64) (string, error) {
	if receipt, err := s.done(ctx, order, token); receipt != "" || err != nil {
		return receipt, err
	}
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return s.record(ctx, order, token)
}

func (s *store) done(ctx context.Context, order string, token int64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.guard.Check(ctx, order, token); err != nil {
		return "", err
	}
	return s.receipts[order], nil
}

// record checks the token again in the same step as it writes.
func (s *store) record(ctx context.Context, order string, token int64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.guard.Check(ctx, order, token); err != nil {
		return "", err
	}
	s.charges[order]++
	s.receipts[order] = fmt.Sprintf("receipt %d of %s", len(s.receipts)+1, order)
	return s.receipts[order], nil
}
