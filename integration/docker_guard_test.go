// A node is killed and comes back within the TTL of a lock that rests on it, without
// and with WithCrashGuard: who gets the lock, and for how long the node has no vote.

package integration_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/integration/internal/dockernode"
)

// holders is how many hold the lock in the end.
type holders int

const (
	one    holders = iota + 1
	two            // what the specification warns of
	either         // Redis promises nothing
)

// guardRows is what docs/safety.md says of nodes that restart.
var guardRows = []struct {
	mode  dockernode.Persistence
	guard bool
	want  holders
}{
	{none, false, two},
	{rdb, false, two},
	{everysec, false, either},
	{always, false, one},
	{none, true, one},
	{rdb, true, one},
	{everysec, true, one},
	{always, true, one},
}

// TestDockerGuard: each row on three nodes, of which the first is the one that crashes.
// It stays out of votes for the guard's time, and no longer; that is so also where it
// has lost nothing, since no client can know.
func TestDockerGuard(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("NOT TESTED with -short: nodes that stay out of votes")
	}
	all := startFleet(t, none, rdb, everysec, always, none, none) // the last two do not crash
	var modes sync.WaitGroup                                      // all at once, however many processors: they mostly wait
	for i, mode := range []dockernode.Persistence{none, rdb, everysec, always} {
		modes.Go(func() {
			t.Run(mode.String(), func(t *testing.T) {
				f := &fleet{T: t}
				for _, n := range []int{i, 4, 5} {
					f.nodes, f.eyes = append(f.nodes, all.nodes[n]), append(f.eyes, all.eyes[n])
				}
				for _, row := range guardRows {
					if row.mode != mode {
						continue
					}
					// A machine that does not restart a node within the TTL has to be
					// asked with more time.
					for ttl := 10 * time.Second; !f.crashRow(ttl, mode, row.guard, row.want); ttl *= 2 {
						if ttl > time.Minute {
							t.Fatal("the first holder's lease has ended each time, so this says nothing")
						}
					}
				}
			})
		})
	}
	modes.Wait()
}

// crashRow is one row: a first holder that reaches the nodes 0 and 1 only, a crash of
// node 0, and a second client. It returns false if that came when the first lease had
// ended.
func (f *fleet) crashRow(ttl time.Duration, mode dockernode.Persistence, guard bool, want holders) bool {
	f.Helper()
	name, opts := fmt.Sprint(mode, ttl), []redlock.Option{redlock.WithTTL(ttl), redlock.WithoutRenewal()}
	holder := f.openTo([]int{0, 1}, opts...)
	if guard {
		name, opts = name+", guarded", append(opts, redlock.WithCrashGuard(ttl), redlock.WithClockBound(3*time.Second))
	}
	second, knew := f.open(opts...), f.openTo([]int{0, 2}, opts...)
	for _, c := range []*redlock.Client{second, knew} {
		f.await(c, name+", warm-up") // with the guard this waits until it is content
	}
	if mode == rdb { // it will go back to this
		if err := f.eyes[0].Save(f.Context()).Err(); err != nil {
			f.Fatal(err)
		}
	}
	a := f.lock(mutexOf(f, holder, name))
	f.settled(a, 2)
	f.nodes[0].Kill()
	killed := time.Now()
	f.nodes[0].Restart()
	up := time.Now()

	m := mutexOf(f, second, name)
	b, err := m.TryLock(f.Context())
	if a.Remaining() == 0 {
		f.Logf("%s: too slow", name)
		_ = b.Unlock(f.Context())
		return false
	}
	switch {
	case err == nil:
		f.Logf("%s: TWO HOLDERS, the first one for %v more; fencing tokens %d and %d", name, round(a.Remaining()), a.FencingToken(), b.FencingToken())
		if want == one {
			f.Errorf("%s: two holders", name)
		}
	default:
		f.Logf("%s: one holder: %v", name, err)
		if want == two {
			f.Errorf("%s: want two holders, as the node cannot know of one: %v", name, err)
		}
		if forgot := mode == none || mode == rdb; guard && forgot != strings.Contains(err.Error(), "WithCrashGuard") {
			f.Errorf("%s: not for the reason that there is: %v", name, err)
		}
	}
	if guard {
		f.awayFor(name, ttl, killed, up, knew, f.openTo([]int{0, 2}, opts...))
	}
	_ = b.Unlock(f.Context()) // of what there is
	_ = a.Unlock(f.Context())
	f.free(name, ttl)
	return true
}

// await locks until c gets it, with all the votes that it needs.
func (f *fleet) await(c *redlock.Client, name string) {
	f.Helper()
	m := mutexOf(f, c, name)
	if !eventually(2*time.Minute, func() bool {
		l, err := m.TryLock(f.Context())
		return err == nil && l.Unlock(f.Context()) == nil
	}) {
		f.Fatal("no lock is granted")
	}
}

// awayFor measures from when on the node that crashed has a vote again: for a client
// that knew it before, and for one that did not. Neither has a quorum without it.
func (f *fleet) awayFor(row string, d time.Duration, killed, up time.Time, knew, fresh *redlock.Client) {
	f.Helper()
	var clients sync.WaitGroup
	for _, c := range []struct {
		name   string
		client *redlock.Client
		from   time.Time // it counts from then on at the earliest
	}{
		{"that knew it", knew, up}, // when it first sees the new process
		{"that is new", fresh, killed},
	} {
		m := mutexOf(f, c.client, row+", client "+c.name)
		clients.Go(func() {
			for {
				l, err := m.TryLock(f.Context())
				if err == nil {
					_ = l.Unlock(f.Context())
					break
				}
				if time.Since(up) > 3*d {
					f.Errorf("a client %s never counts it again: %v", c.name, err)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			f.Logf("%s: a client %s counts it again %v after it was killed, %v after it was up", row, c.name, round(time.Since(killed)), round(time.Since(up)))
			// Its uptime is in whole seconds, of which one is added.
			if most := d + time.Second + 2*quick; time.Since(c.from) < d || time.Since(up) > most {
				f.Errorf("a client %s counts it again after %v, want at least %v; %v after it was up, want at most %v",
					c.name, time.Since(c.from), d, time.Since(up), most)
			}
		})
	}
	clients.Wait()
}

// openTo makes a client that reaches only the nodes given. The others refuse it.
func (f *fleet) openTo(reachable []int, opts ...redlock.Option) *redlock.Client {
	f.Helper()
	nodes := make([]redlock.Node, len(f.nodes))
	for i := range nodes {
		nodes[i] = redlock.NewRedisNode(f.nodes[i].Addr(), redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})) // nobody listens there
	}
	for _, i := range reachable {
		nodes[i] = redlock.NewRedisNode(f.nodes[i].Addr(), f.dial(i))
	}
	c, err := redlock.New(nodes, opts...)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	return c
}
