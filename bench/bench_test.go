// Go benchmarks, for benchstat: the same peers on redis-server processes that the
// benchmarks share, since only what uses the same nodes can be compared.

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// servers are started when they are first needed. TestMain ends them.
var servers = sync.OnceValues(func() (*nodes.Set, error) {
	set, err := nodes.Servers(context.Background(), suiteNodes)
	if err == nil {
		started.Store(set)
	}
	return set, err
})

var started atomic.Pointer[nodes.Set]

// each runs a benchmark with the peers that are measured in a kind of situation.
func each(b *testing.B, kind result.Kind, sizes []int, f func(b *testing.B, s *slot, callers int), callers ...int) {
	b.Helper()
	redisproc.Need(b)
	peers, err := peer.Select([]string{peer.Default})
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range peers {
		for _, n := range sizes {
			for _, c := range callers {
				s := &slot{peer: p, situation: result.Situation{Kind: kind, Callers: c}}
				conf, err := parseConfig(nil, func(string) string { return "" }, nil)
				if err != nil {
					b.Fatal(err)
				}
				s.setup, s.patience = conf.setup, conf.patience
				if s.canMeasure() != nil {
					continue
				}
				b.Run(fmt.Sprintf("peer=%s/n=%d/callers=%d", p.Name, n, c), func(b *testing.B) {
					set, err := servers()
					if err != nil {
						b.Fatal(err)
					}
					s.env = peer.Env{Nodes: set.Options[:n], TTL: s.setup.TTL}
					s.name = func(group, i int) string {
						return fmt.Sprint("bench:", strings.ReplaceAll(b.Name(), "/", ":"), group, i)
					}
					f(b, s, c)
				})
			}
		}
	}
}

// crewOf opens the sessions of a benchmark, and connects: each caller locks once.
func crewOf(b *testing.B, s *slot) []*caller {
	b.Helper()
	crew, err := s.crew(b.Context())
	b.Cleanup(func() { closeSessions(crew) })
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range crew {
		l := c.locker()
		if err := l.Lock(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return crew
}

// BenchmarkLockUnlock is callers with a resource each. ns/op is the time between
// two cycles of any of them.
func BenchmarkLockUnlock(b *testing.B) {
	each(b, result.Lock, []int{1, 3, 5}, func(b *testing.B, s *slot, callers int) {
		b.Helper()
		crew := crewOf(b, s)
		work := make(chan struct{})
		var failed atomic.Int64
		var wg sync.WaitGroup
		if callers > 1 { // one caller is this goroutine
			for _, c := range crew {
				wg.Go(func() {
					for range work {
						cycle(b.Context(), c, &failed)
					}
				})
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			if callers == 1 {
				cycle(b.Context(), crew[0], &failed)
				continue
			}
			work <- struct{}{}
		}
		close(work)
		wg.Wait()
		if n := failed.Load(); n > 0 {
			b.Errorf("%d of %d cycles failed", n, b.N)
		}
	}, 1, 16, 128)
}

func cycle(ctx context.Context, c *caller, failed *atomic.Int64) {
	l := c.locker()
	if l.Lock(ctx) != nil || l.Unlock(ctx) != nil {
		failed.Add(1)
	}
}

// BenchmarkExtend extends one lease.
func BenchmarkExtend(b *testing.B) {
	each(b, result.Extend, []int{5}, func(b *testing.B, s *slot, _ int) {
		b.Helper()
		l := crewOf(b, s)[0].locker()
		if err := l.Lock(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Extend(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.Unlock(b.Context()); err != nil {
			b.Error(err)
		}
	}, 1)
}

// BenchmarkHandOver is the time from a call of Unlock until another client has the
// lock.
func BenchmarkHandOver(b *testing.B) {
	each(b, result.HandOver, []int{5}, func(b *testing.B, s *slot, _ int) {
		b.Helper()
		crew := crewOf(b, s)
		holder, waiter := crew[0].locker(), crew[1].locker()
		if err := holder.Lock(b.Context()); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			locked := make(chan error, 1)
			go func() { locked <- waiter.Lock(b.Context()) }()
			b.StopTimer()
			time.Sleep(queued)
			b.StartTimer()
			if err := holder.Unlock(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := <-locked; err != nil {
				b.Fatal(err)
			}
			holder, waiter = waiter, holder
		}
		if err := holder.Unlock(b.Context()); err != nil {
			b.Error(err)
		}
	}, 2)
}
