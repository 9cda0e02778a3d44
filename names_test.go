// Any bytes are a name: they lock and unlock on real servers, their keys share a
// slot, and no two names share a key.

package redlock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/redlocktest"
)

// oddNames are names that have broken something in some library.
var oddNames = []string{
	"m", " ", "\x00", "\r\n", "a\nb", "{", "}", "{}", "}{", "{}}", "{{}}", "a}b", "a{b", "{a}b", "a{}b", "a{b}c{d}e",
	"{}{a}", "{a", "a}", "{\x00}", "{ }", "\xff\xfe", "{\xff}", "\xe2\x28\xa1", "日本語", "{日本}語", "lock:m", "lock:",
	"redlock:fence:", "redlock:fence:{x}lock:m", "redlock:tomb:{x}y", "%s%n", "'; DROP TABLE", strings.Repeat("n", 200),
	"*", "?", "[a]", `\`, `"`, "$1\r\n", strings.Repeat("{", 100), strings.Repeat("}", 100), strings.Repeat("x", 64<<10),
	strings.Repeat("\x00\xff{}", 16<<10),
}

// claims returns the keys that a mutex of the given name uses on a node.
func claims(t testing.TB, name string, opts ...redlock.Option) (keys []string) {
	t.Helper()
	n := &claimNode{Node: redlocktest.New(1).Node(0)}
	c, err := redlock.New([]redlock.Node{n}, opts...)
	noErr(t, err)
	m, err := c.NewMutex(name)
	if err != nil {
		return nil
	}
	mustUnlock(t, mustLock(t, m))
	noErr(t, c.Close())
	return []string{n.claim.Lock, n.claim.Fence, n.claim.Tombstone}
}

// A claimNode remembers a claim.
type claimNode struct {
	*redlocktest.Node
	claim redlock.Claim
}

func (n *claimNode) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	n.claim = *c
	return n.Node.Acquire(ctx, c)
}

// TestNamesLock locks all odd names on real servers, at the same time, each of
// which must be a lock of its own.
func TestNamesLock(t *testing.T) {
	t.Parallel()
	f := startProxied(t, 3)
	c := f.open(redlock.WithTTL(time.Minute))
	var leases []*redlock.Lease
	for _, name := range oddNames {
		m := mutexOf(t, c, name)
		if m.Name() != name {
			t.Errorf("the name %.20q has become %.20q", name, m.Name())
		}
		l, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatalf("%.100q: %v", name, err)
		}
		leases = append(leases, l)
	}
	if !eventually(10*time.Second, func() bool {
		for _, s := range f.servers {
			if len(lockKeys(t, s)) != len(oddNames) {
				return false
			}
		}
		return true
	}) {
		t.Errorf("%d names, and %d, %d and %d locks", len(oddNames),
			len(lockKeys(t, f.servers[0])), len(lockKeys(t, f.servers[1])), len(lockKeys(t, f.servers[2])))
	}
	for i, l := range leases {
		if l.Name() != oddNames[i] {
			t.Errorf("the lease of %.20q is of %.20q", oddNames[i], l.Name())
		}
		noErr(t, l.Extend(t.Context()))
	}
	for _, l := range leases {
		noErr(t, l.Unlock(t.Context()))
	}
	f.noLocks(10 * time.Second)

	// With tombstones, which need a key of their own.
	for _, p := range f.proxies {
		p.DropReplyTo(isAcquire)
	}
	var failed sync.WaitGroup
	for _, name := range oddNames {
		failed.Go(func() {
			_, err := mutexOf(t, c, name).TryLock(t.Context())
			is(t, err, redlock.ErrNoQuorum)
		})
	}
	failed.Wait()
	for _, p := range f.proxies {
		p.DropReplyTo(nil)
	}
	f.noLocks(10 * time.Second)
	// The third node may not have been asked at all.
	if !eventually(10*time.Second, func() bool {
		n := 0
		for _, s := range f.servers {
			n += tombs(s)
		}
		return n >= 2*len(oddNames)
	}) {
		t.Errorf("there are fewer than two tombstones for each of the %d names", len(oddNames))
	}
}

// TestNamesSlots asks a real server for the slots.
func TestNamesSlots(t *testing.T) {
	t.Parallel()
	s := redisproc.Start(t, redisproc.Args("--cluster-enabled", "yes"))
	for _, name := range oddNames {
		for _, prefix := range []string{"lock:", "", "{", "}", "{}"} {
			keys := claims(t, name, redlock.WithKeyPrefix(prefix))
			for _, key := range keys {
				got := ask(t, s, "CLUSTER", "KEYSLOT", key)
				if want := fmt.Sprint(slot.Of(keys[0])); got != want {
					t.Errorf("name %.30q, prefix %q: the slot of %.100q is %s, that of its lock %s", name, prefix, key, got, want)
				}
				if n, err := strconv.Atoi(got); err != nil || n != int(slot.Of(key)) {
					t.Errorf("the slot of %.100q is %s, not %d", key, got, slot.Of(key))
				}
			}
		}
	}
}

// FuzzNames: the keys of one name share a slot, and those of two names nothing.
func FuzzNames(f *testing.F) {
	for i, name := range oddNames {
		f.Add(name, oddNames[(i+7)%len(oddNames)], "lock:")
		f.Add(name, name+"}", "{")
	}
	f.Fuzz(func(t *testing.T, a, b, prefix string) {
		used := make(map[string]string)
		for _, name := range []string{a, b} {
			keys := claims(t, name, redlock.WithKeyPrefix(prefix))
			if keys == nil && name != "" && !strings.HasPrefix(prefix+name, "redlock:") {
				t.Errorf("the name %q with the prefix %q is refused", name, prefix)
			}
			for _, key := range keys {
				if slot.Of(key) != slot.Of(keys[0]) {
					t.Errorf("%q and %q are of different slots", keys[0], key)
				}
				if other, ok := used[key]; ok && other != name {
					t.Errorf("%q and %q share the key %q", other, name, key)
				}
				used[key] = name
			}
			if len(used) == 0 {
				continue
			}
			if keys != nil && keys[0] != prefix+name {
				t.Errorf("the lock of %q is at %q", name, keys[0])
			}
		}
	})
}
