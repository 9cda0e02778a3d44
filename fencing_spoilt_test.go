// Fencing counters that something else has spoilt, on real servers: not a
// number, of another type, or far ahead of the clock.

package redlock_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A spoiling puts something in the place of a counter.
type spoiling struct {
	words string // of the node's answer
	final bool   // time does not heal it
	put   func(t *testing.T, s *redisproc.Server, key string)
}

func putting(value string) func(*testing.T, *redisproc.Server, string) {
	return func(t *testing.T, s *redisproc.Server, key string) {
		t.Helper()
		ask(t, s, "SET", key, value, "EX", "3600")
	}
}

var spoilings = map[string]spoiling{
	"words":    {"REDLOCKCOUNTER", true, putting("precious")},
	"empty":    {"REDLOCKCOUNTER", true, putting("")},
	"negative": {"REDLOCKCOUNTER", true, putting("-1")},
	"fraction": {"REDLOCKCOUNTER", true, putting("1795973064839600.5")},
	"exponent": {"REDLOCKCOUNTER", true, putting("1.7959730648396e+15")},
	"2^53-1":   {"REDLOCKAHEAD", false, putting("9007199254740991")},
	"2^53":     {"REDLOCKCOUNTER", true, putting("9007199254740992")},
	"2^63-1":   {"REDLOCKCOUNTER", true, putting("9223372036854775807")},
	"an hour ahead": {"REDLOCKAHEAD", false, func(t *testing.T, s *redisproc.Server, key string) {
		t.Helper()
		ask(t, s, "SET", key, strconv.FormatInt(clockOf(t, s)+3600e6, 10), "EX", "3600")
	}},
	"list": {"REDLOCKCOUNTER", true, func(t *testing.T, s *redisproc.Server, key string) {
		t.Helper()
		ask(t, s, "DEL", key)
		ask(t, s, "RPUSH", key, "precious")
		ask(t, s, "EXPIRE", key, "3600")
	}},
}

// TestFencingSpoilt: a node whose counter is of no use does not vote, says so with
// its name and the key's, and gets no lock key. What is there stays. On one node of
// three that is nobody's concern; on two there is no quorum, and no waiting for
// what time does not heal.
func TestFencingSpoilt(t *testing.T) {
	t.Parallel()
	for name, sp := range spoilings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			var told complaints
			c := f.open(redlock.WithTrace(&redlock.Trace{NodeDone: told.add}), redlock.WithMaxAttempts(2))
			f.warm(c)
			m := mutexOf(t, c, "m")
			key := counterKey("m")

			sp.put(t, f.servers[0], key)
			before := ask(t, f.servers[0], "DUMP", key)
			var last int64
			for range 20 {
				l := mustLock(t, m)
				if l.FencingToken() <= last {
					t.Errorf("token %d after %d", l.FencingToken(), last)
				}
				last = l.FencingToken()
				f.settled(2)
				if keys := lockKeys(t, f.servers[0]); len(keys) > 0 {
					t.Errorf("the spoilt node has %q", keys)
				}
				noErr(t, l.Extend(t.Context()))
				mustUnlock(t, l)
				f.noLocks(10 * time.Second)
			}
			told.expect(t, f.addr(0), sp.words, key)

			sp.put(t, f.servers[1], key)
			_, err := m.Lock(t.Context())
			if !errors.Is(err, redlock.ErrNoQuorum) {
				t.Fatalf("with a majority spoilt: %v", err)
			}
			q, ok := errors.AsType[*redlock.QuorumError](err)
			if !ok {
				t.Fatalf("no QuorumError: %v", err)
			}
			bad := complaints{list: q.Nodes.WrappedErrors()}
			for i := range 2 {
				bad.expect(t, f.addr(i), sp.words, key)
			}
			if want := fmt.Sprintf("%q", key); !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %s", err, want)
			}
			if n, want := told.attempts(f.addr(1)), map[bool]int{true: 1, false: 2}[sp.final]; n != want {
				t.Errorf("it made %d attempts, want %d", n, want)
			}
			f.noLocks(10 * time.Second)
			if after := ask(t, f.servers[0], "DUMP", key); after != before {
				t.Errorf("what was there has changed: %q, now %q", before, after)
			}

			ask(t, f.servers[0], "DEL", key)
			ask(t, f.servers[1], "DEL", key)
			l := mustLock(t, m)
			if l.FencingToken() <= last {
				t.Errorf("token %d after %d, once it is mended", l.FencingToken(), last)
			}
			mustUnlock(t, l)
		})
	}
}

// complaints collects what nodes said against acquires.
type complaints struct {
	mu   sync.Mutex
	list []error
}

func (n *complaints) add(d redlock.NodeDone) {
	if d.Op != "acquire" || d.Err == nil || d.Verdict == redlock.Unsent { // of that the node knows nothing
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, d.Err)
}

func (n *complaints) of(node string) []error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.list), func(err error) bool {
		e, ok := errors.AsType[*redlock.NodeError](err)
		return !ok || e.Node != node || e.Op != "acquire"
	})
}

func (n *complaints) attempts(node string) int { return len(n.of(node)) }

// expect checks that the node has said the words, and the key.
func (n *complaints) expect(t *testing.T, node, words, key string) {
	t.Helper()
	said := n.of(node)
	if len(said) == 0 {
		t.Errorf("node %s: no error", node)
	}
	for _, err := range said {
		if !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), fmt.Sprintf("key %q", key)) {
			t.Errorf("node %s: %v, want %s and the key %q", node, err, words, key)
		}
	}
}
