// The metrics beside what Client.Stats says of the same events.

package redlockotel_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// repeats is an event of moves in which releases are repeated: of that, Stats tells and
// hooks do not.
const repeats = "more callers than a node that is silent takes"

// TestStats: whatever happens, both have counted the same.
func TestStats(t *testing.T) {
	for _, m := range moves {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				p := w.join(distant(), nil, m.opts...)
				m.run(p)
				synctest.Wait()
				s := p.client.Stats()
				got := w.values()

				// sum adds up the samples of a name with some label, or any.
				sum := func(name string, with ...string) (total int64) {
				series:
					for series, v := range got {
						if series != name && !strings.HasPrefix(series, name+"{") {
							continue
						}
						for _, label := range with {
							if !strings.Contains(series, label) {
								continue series
							}
						}
						n, err := strconv.ParseInt(v, 10, 64)
						noErr(t, err)
						total += n
					}
					return total
				}
				same := func(what string, metrics, stats int64) {
					if metrics != stats {
						t.Errorf("%s: metrics %d, Stats %d", what, metrics, stats)
					}
				}
				same("acquired", sum("redlock_lease_acquired_total"), s.LeaseAcquired)
				same("held", sum("redlock_leases_held"), s.LeasesHeld)
				same("waiting", sum("redlock_locks_waiting"), s.Waiting)
				same("attempts", sum("redlock_attempts_total"), s.Attempts)
				same("called", sum("redlock_waiter_called_total"), s.Called)
				same("endangered", sum("redlock_lease_endangered_total"), s.Dangers)
				same("dropped", sum("redlock_cleanup_dropped_total"), s.CleanupsDropped)
				same("renewals", sum("redlock_heartbeat_latency_seconds_count"), s.Renewals)
				same("ended", sum("redlock_hold_duration_seconds_count"), s.HoldTime.Count)
				for cause, n := range s.LeaseLost {
					same("lost: "+string(cause), sum("redlock_lease_lost_total", fmt.Sprintf("redlock_cause=%q", cause)), n)
				}
				for failure, n := range s.AttemptFailed {
					same("attempts failed: "+string(failure), sum("redlock_attempts_total", fmt.Sprintf("error_type=%q", failure)), n)
				}
				for failure, n := range s.LockFailed {
					same("locks failed: "+string(failure), sum("redlock_lock_duration_seconds_count", fmt.Sprintf("error_type=%q", failure)), n)
				}
				for _, n := range s.Nodes {
					node := fmt.Sprintf("redlock_node=%q", n.Name)
					same(n.Name+" answered", sum("redlock_node_duration_seconds_count", node), n.Latency.Count)
					same(n.Name+" deaf", sum("redlock_node_deaf_total", node), n.Deaf)
					for fault, f := range n.Failed {
						failed := sum("redlock_node_errors_total", node, fmt.Sprintf("error_type=%q", fault))
						if m.name == repeats && failed <= f {
							continue
						}
						same(n.Name+" failed: "+string(fault), failed, f)
					}
				}
			})
		})
	}
}
