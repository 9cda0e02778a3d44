// Server states in which a node forgets what it had granted, without a restart: a key
// is deleted, everything is, databases are swapped, memory is short.

package integration_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// short takes all memory from a server, which thereupon drops what its policy lets it,
// and gives it back.
func short(policy string) func(*testing.T, *redisproc.Server) {
	return func(t *testing.T, s *redisproc.Server) {
		t.Helper()
		tell(t, s, "CONFIG", "SET", "maxmemory-policy", policy)
		tell(t, s, "CONFIG", "SET", "maxmemory", "1")
		if policy != "noeviction" && !eventually(10*time.Second, func() bool { return tell(t, s, "EXISTS", "lock:a") == "0" }) {
			t.Fatal("nothing was dropped")
		}
		if _, err := s.Do("SET", "other", "1"); policy == "noeviction" && (err == nil || !strings.HasPrefix(err.Error(), "OOM")) {
			t.Fatalf("memory is not short: %v", err)
		}
		tell(t, s, "CONFIG", "SET", "maxmemory", "0")
		tell(t, s, "DEL", "other")
	}
}

func doing(args ...string) func(*testing.T, *redisproc.Server) {
	return func(t *testing.T, s *redisproc.Server) { tell(t, s, args...) }
}

var swaps atomic.Int64

// swap puts a database that has no lock in the place of the one that has it.
func swap(t *testing.T, s *redisproc.Server) {
	tell(t, s, "SWAPDB", "0", fmt.Sprint(1+swaps.Add(1)%15))
}

var forgettings = map[string]struct {
	do     func(*testing.T, *redisproc.Server)
	keeps  bool // the lock is still there
	danger bool // Check warns of it beforehand
}{
	"DEL":            {do: doing("DEL", "lock:a")},
	"FLUSHALL":       {do: doing("FLUSHALL")},
	"SWAPDB":         {do: swap},
	"volatile-lru":   {do: short("volatile-lru"), danger: true},
	"allkeys-random": {do: short("allkeys-random"), danger: true},
	"noeviction":     {do: short("noeviction"), keeps: true},
	"SCRIPT FLUSH":   {do: doing("SCRIPT", "FLUSH"), keeps: true},
	"CLIENT KILL":    {do: doing("CLIENT", "KILL", "TYPE", "normal"), keeps: true},
	"DEBUG RELOAD":   {do: doing("DEBUG", "RELOAD"), keeps: true},
}

// TestStateForgets: what one node of three forgets it gets back from the holder. What
// two forget is a loss, which the holder learns from its next renewal, long before its
// deadline; whoever locks then has the larger token, even if the counter is gone too.
func TestStateForgets(t *testing.T) {
	t.Parallel()
	for name, state := range forgettings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "DEL" && name != "volatile-lru" {
				t.Skip("NOT TESTED with -short")
			}
			const ttl, every = 12 * time.Second, 500 * time.Millisecond
			f := startFarm(t, 3, nil, redisproc.Args("--enable-debug-command", "local", "--maxmemory-policy", "noeviction"))
			c, other := f.open(redlock.WithTTL(ttl), redlock.WithRenewal(every)), f.open(redlock.WithTTL(ttl))
			f.warm(c)
			l := f.lock(mutexOf(t, c, "a"))
			f.settled(l, 3)
			locked := time.Now()

			state.do(t, f.servers[0])
			f.settled(l, 3) // again
			if err := l.Err(); err != nil {
				t.Fatalf("one node of three: %v", err)
			}
			if state.danger {
				tell(t, f.servers[2], "CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", name)
				f.told(other, 1, "drops keys when its memory is full ("+name+")")
			}

			// A counter that is gone as well begins anew at the clock, which must have
			// passed the first token by then: see docs/safety.md.
			for time.Since(locked) < 3*time.Second {
				time.Sleep(10 * time.Millisecond)
			}
			state.do(t, f.servers[0])
			state.do(t, f.servers[1])
			forgot := time.Now()
			if state.keeps {
				for time.Since(forgot) < 3*every {
					if err := l.Err(); err != nil {
						t.Fatalf("two nodes of three: %v", err)
					}
					time.Sleep(every / 10)
				}
				_, err := mutexOf(t, other, "a").TryLock(t.Context())
				is(t, err, redlock.ErrTaken)
				f.settled(l, 3)
				f.unlock(l)
				f.free("a")
				return
			}
			select {
			case <-l.Done():
			case <-time.After(ttl):
			}
			t.Logf("after %v: %v", round(time.Since(forgot)), l.Err())
			is(t, l.Err(), redlock.ErrLost, redlock.ErrNotHeld)
			if late := time.Since(forgot); late > every+quick {
				t.Errorf("the holder learned it after %v, want %v", late, every)
			}
			next := f.lock(mutexOf(t, other, "a"))
			if next.FencingToken() <= l.FencingToken() {
				t.Errorf("fencing token %d after %d", next.FencingToken(), l.FencingToken())
			}
			f.unlock(next)
			f.free("a")
		})
	}
}
