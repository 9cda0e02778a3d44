// Several locks at once, without deadlock.

package main

import (
	"context"
	"slices"

	"github.com/quorumlock/redlock"
)

// lockAll calls fn with the leases of all names, by name. The context of fn ends when the
// first of them does, or ctx. The locks are taken in the order of their names, each once
// (a mutex is not reentrant), so that of two callers who want the same two none waits for
// the other while that waits for him. That holds only if everybody takes several locks in
// this way, and nobody takes one more while he has some.
func lockAll(ctx context.Context, client *redlock.Client, names []string, fn func(ctx context.Context, held map[string]*redlock.Lease) error) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	held := make(map[string]*redlock.Lease, len(names))
	var next func(ctx context.Context) error
	next = func(ctx context.Context) error {
		if len(held) == len(names) {
			return fn(ctx, held)
		}
		mutex, err := client.NewMutex(names[len(held)])
		if err != nil {
			return err
		}
		return mutex.Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
			held[l.Name()] = l
			return next(ctx)
		})
	}
	return next(ctx)
}
