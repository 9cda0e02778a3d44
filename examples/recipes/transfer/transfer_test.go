// AB and BA never deadlock, and no cent is lost.

package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/redlocktest"
)

func newClient(t *testing.T, cluster *redlocktest.Cluster) *redlock.Client {
	t.Helper()
	for i := range cluster.Len() {
		cluster.Node(i).Delay(time.Millisecond, time.Millisecond)
	}
	client, err := redlock.New(cluster.Nodes())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func closeAll(clients ...*redlock.Client) {
	for _, c := range clients {
		_ = c.Close()
	}
}

// TestTransferOrder: six clients transfer in a circle and against it, three accounts
// among which any two may be asked for in any order.
func TestTransferOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(5)
		b := &bank{balances: map[string]int{"A": 100, "B": 100, "C": 100}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for i, way := range []string{"AB", "BA", "BC", "CB", "CA", "AC"} {
			client := newClient(t, cluster)
			wg.Go(func() {
				defer closeAll(client)
				for range 20 {
					if err := b.transfer(ctx, client, way[:1], way[1:], 1+i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		want := map[string]int{"A": 100 + 20*(-1+2+5-6), "B": 100 + 20*(1-2-3+4), "C": 100 + 20*(3-4-5+6)}
		for name, cents := range want {
			if b.balances[name] != cents {
				t.Errorf("%s has %d, want %d", name, b.balances[name], cents)
			}
		}
	})
}

// TestTransferSame: an account is locked once, though it is named twice.
func TestTransferSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, redlocktest.New(5))
		defer closeAll(client)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b := &bank{balances: map[string]int{"A": 100}}
		if err := b.transfer(ctx, client, "A", "A", 7); err != nil || b.balances["A"] != 100 {
			t.Errorf("A has %d, error %v", b.balances["A"], err)
		}
	})
}

// TestTransferUnordered shows what the order is for: taken as they are named, the two
// locks are never both got.
func TestTransferUnordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(5)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for _, way := range []string{"AB", "BA"} {
			client := newClient(t, cluster)
			wg.Go(func() {
				defer closeAll(client)
				err := lockAll(ctx, client, []string{way[:1]}, func(ctx context.Context, _ map[string]*redlock.Lease) error {
					time.Sleep(time.Second) // until both have their first
					return lockAll(ctx, client, []string{way[1:]}, func(context.Context, map[string]*redlock.Lease) error { return nil })
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v: that was no test", way, err)
				}
			})
		}
		wg.Wait()
	})
}

// TestTransferLost: when one of the leases ends, so does the context, and what comes
// after another holder is refused.
func TestTransferLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(5)
		client, other := newClient(t, cluster), newClient(t, cluster)
		defer closeAll(client, other)
		b := &bank{balances: map[string]int{"A": 100, "B": 100}}
		bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := lockAll(bounded, client, []string{"A", "B"}, func(ctx context.Context, held map[string]*redlock.Lease) error {
			has, err := b.read(ctx, held)
			if err != nil {
				return err
			}
			for i := range cluster.Len() { // the nodes forget one of the two
				cluster.Node(i).Del("lock:B")
			}
			if err := b.transfer(bounded, other, "B", "B", 0); err != nil {
				t.Error(err)
			}
			if err := b.write(context.WithoutCancel(ctx), held, has); !errors.Is(err, fence.ErrStale) {
				t.Errorf("a write that comes too late: %v", err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, redlock.ErrLost) {
			t.Errorf("error %v", err)
		}
	})
}
