// The floor does not wait for nodes that are far away, and does not lose count of
// what they answer.

package peer_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
)

func floor(t *testing.T) peer.Peer {
	t.Helper()
	peers, err := peer.Select([]string{"floor"})
	if err != nil {
		t.Fatal(err)
	}
	return peers[0]
}

func TestFloorFar(t *testing.T) {
	set, err := nodes.Embedded(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	const far = 300 * time.Millisecond
	network, err := set.Behind([]time.Duration{far, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	l := locker(t, floor(t), peer.Env{Nodes: network.Options, TTL: time.Minute})
	cycle := func() {
		t.Helper()
		if err := l.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	const cycles = 12 // fewer answers than may be owed
	for range cycles {
		cycle()
	}
	if took := time.Since(start); took > cycles*far {
		t.Errorf("%d locks took %v: the floor waits for a node that is %v away", cycles, took, far)
	}
	for range 20 { // more than may be owed: now it does wait
		cycle()
	}
}

func TestFloorDown(t *testing.T) {
	set, err := nodes.Embedded(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	dead := &redis.Options{Addr: "127.0.0.1:1"}
	env := peer.Env{Nodes: append([]*redis.Options{dead}, set.Options...), TTL: time.Minute}
	l := locker(t, floor(t), env)
	if err := l.Lock(t.Context()); err != nil {
		t.Error("one of three is down:", err)
	}
	env.Nodes = append(env.Nodes[:2], dead)
	s, err := floor(t).Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Locker("name"); err == nil {
		t.Error("two of three are down, and it locks")
	}
}
