// Every peer really locks: what it measures would else be nothing.

package peer_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
)

func TestSelect(t *testing.T) {
	names := func(list ...string) []string {
		t.Helper()
		peers, err := peer.Select(list)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, p := range peers {
			all = append(all, p.Name)
		}
		return all
	}
	if got := names("redsync", "redlock", "redsync"); !slices.Equal(got, []string{"redlock", "redsync"}) {
		t.Errorf("selected %q", got)
	}
	if got := names(peer.Default, peer.Alternatives); !slices.Equal(got, peer.Names()) {
		t.Errorf("both groups are %q, all are %q", got, peer.Names())
	}
	if got := names(peer.Default); slices.Contains(got, "etcd") || !slices.Contains(got, peer.Baseline) {
		t.Errorf("the default is %q", got)
	}
	if _, err := peer.Select([]string{"a", "redsync", "b"}); err == nil || strings.Count(err.Error(), "no such peer") != 2 {
		t.Errorf("two unknown names: %v", err)
	}
}

// TestExclusion takes each lock with two clients.
func TestExclusion(t *testing.T) {
	set, err := nodes.Embedded(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	peers, err := peer.Select([]string{peer.Default, peer.Alternatives})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		t.Run(p.Name, func(t *testing.T) {
			env := peer.Env{Nodes: set.Options, TTL: 10 * time.Second}
			if p.Serve != nil {
				if testing.Short() {
					t.Skip("starts servers")
				}
				env.Endpoint = serve(t, p)
			}
			first, second := locker(t, p, env), locker(t, p, env)
			exclude(t, p, first, second)
		})
	}
}

// serve starts the servers of p. Only PostgreSQL is there wherever tests are run.
func serve(t *testing.T, p peer.Peer) string {
	t.Helper()
	s, err := p.Serve(t.Context())
	kind, _, _ := strings.Cut(p.Name, "-")
	required := slices.Contains(strings.Split(os.Getenv("REDLOCK_REQUIRE"), ","), kind)
	if errors.Is(err, exec.ErrNotFound) && !required {
		t.Skipf("NOT TESTED: %s is not installed (REDLOCK_REQUIRE=%[1]s makes this a failure): %v", kind, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Endpoint()
}

func locker(t *testing.T, p peer.Peer, env peer.Env) peer.Locker {
	t.Helper()
	s, err := p.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l, err := s.Locker("redlock-bench:{test}:" + p.Name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func exclude(t *testing.T, p peer.Peer, first, second peer.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 3 { // a locker is used again and again
		if err := first.Lock(ctx); err != nil {
			t.Fatal("lock:", err)
		}
		if p.Extends {
			if err := first.Extend(ctx); err != nil {
				t.Error("extend:", err)
			}
		}
		locked := make(chan error, 1)
		go func() { locked <- second.Lock(ctx) }()
		wait := time.After(50 * time.Millisecond)
		if !p.Waits {
			wait = nil // its refusal comes, however slow the machine is
		}
		select {
		case err := <-locked:
			if p.Waits || err == nil {
				t.Fatalf("the lock is held, and another one's Lock returned %v", err)
			}
		case <-wait:
		}
		if err := first.Unlock(ctx); err != nil {
			t.Fatal("unlock:", err)
		}
		if !p.Waits {
			continue
		}
		if err := <-locked; err != nil {
			t.Fatal("lock after unlock:", err)
		}
		if err := second.Unlock(ctx); err != nil {
			t.Fatal("second unlock:", err)
		}
	}
}

// TestObserve wants every node of a lock and an unlock, from the peers that tell.
func TestObserve(t *testing.T) {
	set, err := nodes.Embedded(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	peers, _ := peer.Select([]string{peer.Default})
	for _, p := range peers {
		if !p.Nodes {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			type answer struct {
				node int
				op   string
			}
			answers := make(chan answer, 1000)
			l := locker(t, p, peer.Env{Nodes: set.Options, TTL: 10 * time.Second, Observe: func(node int, op string, _ time.Duration) {
				answers <- answer{node, op}
			}})
			// Again and again: redsync with WithFailFast drops what comes after a quorum.
			seen := make(map[answer]bool)
			for end := time.Now().Add(30 * time.Second); len(seen) < 6; {
				if time.Now().After(end) {
					t.Fatalf("only %v", seen)
				}
				if err := errors.Join(l.Lock(t.Context()), l.Unlock(t.Context())); err != nil {
					t.Fatal(err)
				}
				for len(answers) > 0 {
					seen[<-answers] = true
				}
			}
		})
	}
}
