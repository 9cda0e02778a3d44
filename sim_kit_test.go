// What the tests in simulated time share: a client of nodes in memory, and
// checks of what a call returned and how long it took.

package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A sim is a client and its nodes in memory. It is made inside a bubble of
// testing/synctest, which fails the test if a goroutine is left at its end.
type sim struct {
	*redlocktest.Cluster
	t      testing.TB
	client *redlock.Client
}

// simulate makes a sim of n nodes. At the end of the test all faults are
// switched off, and the client must close without a complaint.
func simulate(t testing.TB, n int, opts ...redlock.Option) *sim {
	t.Helper()
	c := redlocktest.New(n)
	client, err := redlock.New(c.Nodes(), opts...)
	noErr(t, err)
	s := &sim{Cluster: c, t: t, client: client}
	t.Cleanup(func() {
		s.heal()
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func (s *sim) heal() {
	for _, n := range s.all() {
		n.Heal()
	}
}

// all returns the nodes.
func (s *sim) all() []*redlocktest.Node {
	nodes := make([]*redlocktest.Node, s.Len())
	for i := range nodes {
		nodes[i] = s.Node(i)
	}
	return nodes
}

// first returns the first n nodes.
func (s *sim) first(n int) []*redlocktest.Node { return s.all()[:n] }

func (s *sim) mutex(name string, opts ...redlock.Option) *redlock.Mutex {
	s.t.Helper()
	return mutexOf(s.t, s.client, name, opts...)
}

// lock takes a lock that is free.
func (s *sim) lock(name string, opts ...redlock.Option) *redlock.Lease {
	s.t.Helper()
	l, err := s.mutex(name, opts...).TryLock(s.t.Context())
	noErr(s.t, err)
	return l
}

// foreign is a value that no client of the test has made.
const foreign = "somebody-else"

// occupy gives the lock to somebody else on the given nodes.
func occupy(name string, ttl time.Duration, nodes ...*redlocktest.Node) {
	for _, n := range nodes {
		n.Set("lock:"+name, foreign, ttl)
	}
}

// drop deletes the lock on the given nodes.
func drop(name string, nodes ...*redlocktest.Node) {
	for _, n := range nodes {
		n.Del("lock:" + name)
	}
}

// locks returns the keys that are locks, as "node key value".
func (s *sim) locks() []string {
	var found []string
	for _, n := range s.all() {
		for _, key := range n.Keys() {
			if !strings.HasPrefix(key, "redlock:") { // the library's own: tombstones
				value, _, _ := n.Get(key)
				found = append(found, fmt.Sprintf("%s %s %s", n.Name(), key, value))
			}
		}
	}
	return found
}

// noLocks checks that no node holds a lock.
func (s *sim) noLocks() {
	s.t.Helper()
	if left := s.locks(); len(left) > 0 {
		s.t.Errorf("locks are left: %q", left)
	}
}

// holding returns how many nodes hold the lease's token.
func (s *sim) holding(l *redlock.Lease) int {
	count := 0
	for i, n := range s.all() {
		if value, _, ok := n.Get("lock:" + l.Name()); ok && value == fmt.Sprintf("%s.%d", l.Token(), i) {
			count++
		}
	}
	return count
}

// executed counts the commands of the given kinds that nodes have executed.
func (s *sim) executed(ops ...redlocktest.Op) int {
	count := 0
	for _, n := range s.all() {
		for _, c := range n.Calls() {
			for _, op := range ops {
				if c.Op == op {
					count++
				}
			}
		}
	}
	return count
}

// everyOp are all kinds of commands.
var everyOp = []redlocktest.Op{redlocktest.Acquire, redlocktest.Extend, redlocktest.Release}

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is checks that err wraps all the targets.
func is(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("the error is not %q: %v", target, err)
		}
	}
}

// isNot checks that err wraps none of the targets.
func isNot(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("the error is %q: %v", target, err)
		}
	}
}

// took returns how long f ran; in a bubble that is simulated time, and exact.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// exactly checks a time of a bubble.
func exactly(t testing.TB, what string, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
