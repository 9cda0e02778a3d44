// What the locks protect: accounts, and their fence.

package main

import (
	"context"
	"maps"
	"sync"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

// A bank keeps accounts in memory. Reading and writing are apart in time, so that two
// transfers that touch one account at once would lose money without the locks. The fence
// refuses a holder of the past.
type bank struct {
	mu       sync.Mutex
	guard    fence.Memory
	balances map[string]int
}

// transfer moves cents from one account to another, under the locks of both.
func (b *bank) transfer(ctx context.Context, client *redlock.Client, from, to string, cents int) error {
	return lockAll(ctx, client, []string{from, to}, func(ctx context.Context, held map[string]*redlock.Lease) error {
		has, err := b.read(ctx, held)
		if err != nil {
			return err
		}
		has[from] -= cents
		has[to] += cents
		return b.write(ctx, held, has)
	})
}

func (b *bank) read(ctx context.Context, held map[string]*redlock.Lease) (map[string]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	has := make(map[string]int)
	for name, l := range held {
		if err := b.guard.Check(ctx, name, l.FencingToken()); err != nil {
			return nil, err
		}
		has[name] = b.balances[name]
	}
	return has, nil
}

// write writes all or nothing.
func (b *bank) write(ctx context.Context, held map[string]*redlock.Lease, has map[string]int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, l := range held {
		if err := b.guard.Check(ctx, name, l.FencingToken()); err != nil {
			return err
		}
	}
	maps.Copy(b.balances, has)
	return nil
}
