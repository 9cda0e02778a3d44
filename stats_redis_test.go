//go:build unix

// Stats of real servers: what is wrong with one shows as what it is.

package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestStatsRedis: what go-redis says of a server that is gone, stands still, forbids or
// refuses is counted as that. It tries to connect again until the time is over, so that
// one that is gone may look like one that stands still.
func TestStatsRedis(t *testing.T) {
	f := startFleet(t, 5)
	client := f.open(redlock.WithNodeTimeout(300 * time.Millisecond))
	warm(t, client)
	before := client.Stats().Nodes
	noErr(t, f.servers[1].Kill())
	noErr(t, f.servers[2].Pause())
	ask(t, f.servers[3], "ACL", "SETUSER", "default", "-eval", "-evalsha")
	ask(t, f.servers[4], "CONFIG", "SET", "maxmemory", "1")
	for range 3 {
		_, err := mutexOf(t, client, "x").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
	}
	want := []redlock.NodeFault{"", redlock.NodeTimeout, redlock.NodeTimeout, redlock.NodeForbidden, redlock.NodeRejected}
	var after []redlock.NodeStats
	if !eventually(10*time.Second, func() bool {
		after = client.Stats().Nodes
		for i, n := range after {
			if n := n.Failed[want[i]] + n.Failed[redlock.NodeUnsent]; i > 0 && n < 3 {
				return false
			}
		}
		return true
	}) {
		t.Errorf("%+v", after)
	}
	for i, n := range after {
		for k, count := range n.Failed {
			if k != want[i] && (k != redlock.NodeUnsent || i > 2) && count > 1 { // a connection that breaks fails by itself
				t.Errorf("node %d: %s: %d", i, k, count)
			}
		}
		if l := n.Latency; before[i].Latency.Count == 0 || l.P50 <= 0 || l.P50 > time.Second || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.Max {
			t.Errorf("%s: %+v", n.Name, l)
		}
	}
	noErr(t, f.servers[2].Resume())
}
