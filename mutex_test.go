// redlock beside redsync, the reference, on real servers: the same random work
// has the same outcomes and leaves the same keys, and contenders of both
// libraries keep each other out.

package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// TestMutexAgainstRedsync runs random sequences. REDLOCK_SEED repeats a run.
func TestMutexAgainstRedsync(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("REDLOCK_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		noErr(t, err)
	}
	f := startFleet(t, 5)
	seen := make(map[string]int)
	for _, n := range []int{1, 2, 3, 4, 5} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			d := newDuel(t, f, n, seen)
			for i := range uint64(12) {
				d.play(seed+i, 16)
				if t.Failed() {
					t.Fatalf("seed %d, after:\n%s", seed, strings.Join(d.log, "\n"))
				}
			}
		})
	}
	t.Logf("seed %d: %v", seed, seen)
	if len(seen) != 8 { // each of try, lock, extend and unlock has won and lost
		t.Error("the sequences were too simple")
	}
}

// TestMutexSharesWithRedsync has contenders of both libraries on one name.
func TestMutexSharesWithRedsync(t *testing.T) {
	const (
		each   = 3 // contenders of each library
		rounds = 12
		name   = "shared"
	)
	f := startFleet(t, 5)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pause := func() time.Duration { return rand.N(8 * time.Millisecond) }

	var inside, total atomic.Int32
	critical := func(who string, nodes []*redis.Client, holds func(node int, value string) bool) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%s: %d holders at once", who, n)
		}
		quorum := 0
		for i, c := range nodes {
			if v, _ := c.Get(ctx, name).Result(); holds(i, v) {
				quorum++
			}
		}
		if quorum < 3 {
			t.Errorf("%s: only %d nodes hold its lock", who, quorum)
		}
		total.Add(1)
		inside.Add(-1)
	}

	var wg sync.WaitGroup
	for k := range each {
		var nodes []*redis.Client
		var clients []redis.UniversalClient
		for i := range f.servers {
			c := dial(t, f.addr(i), nil)
			nodes, clients = append(nodes, c), append(clients, c)
		}
		m := mutexOf(t, openClient(t, redlock.Redis(clients...), redlock.WithKeyPrefix(""), redlock.WithTTL(time.Minute),
			redlock.WithBackoff(func(int, float64) time.Duration { return pause() })), name)
		wg.Go(func() {
			for range rounds {
				l, err := m.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				critical(fmt.Sprintf("redlock %d", k), nodes, func(i int, v string) bool { return v == fmt.Sprintf("%s.%d", l.Token(), i) })
				if err := l.Err(); err != nil {
					t.Error(err)
				}
				if err := l.Unlock(ctx); err != nil {
					t.Error(err)
				}
				time.Sleep(pause())
			}
		})
		rs := redsync.New(pools(clients)...).NewMutex(name, redsync.WithExpiry(time.Minute), redsync.WithTries(1_000_000),
			redsync.WithRetryDelayFunc(func(int) time.Duration { return pause() }))
		wg.Go(func() {
			for range rounds {
				if err := rs.LockContext(ctx); err != nil {
					t.Error(err)
					return
				}
				critical(fmt.Sprintf("redsync %d", k), nodes, func(_ int, v string) bool { return v == rs.Value() })
				if ok, err := rs.UnlockContext(ctx); !ok {
					t.Error(err)
				}
				time.Sleep(pause())
			}
		})
	}
	wg.Wait()
	if total.Load() != 2*each*rounds {
		t.Errorf("%d critical sections, want %d", total.Load(), 2*each*rounds)
	}
	f.noLocks(10 * time.Second)
}
