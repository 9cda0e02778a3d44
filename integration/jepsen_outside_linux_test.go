// The Jepsen test with faults that no lock of this kind survives.

package integration_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

// TestJepsenOutside breaks what exclusion rests on, and keeps what the order of the
// tokens rests on:
//
//   - the lock keys, and nothing else, are deleted on a majority or on all nodes,
//     which moves no counter;
//   - a majority loses all it knew, and stays out for the clock bound and 1.05 s,
//     which is enough for counters that went back and less than half of the TTL.
//     All clocks are one.
//
// Leases are not renewed, so that a holder does not learn of it. Then two hold the
// lock, plain sets lose updates, and the harness has to see both. The tokens are in
// order all the same, and fenced sets lose nothing. A majority that is flushed and
// votes on at once is not in this test: then tokens may come twice. The short form
// only deletes.
func TestJepsenOutside(t *testing.T) {
	o := orders{TTL: 3 * guard, Workers: 2}
	length, enough, deck := 15*time.Second, 50, 2
	if testing.Short() {
		length, enough, deck = 2*time.Second, 20, 1
	}
	j := startJepsen(t, drawSeed(t), o, redisproc.None)
	history := j.run(length, enough, j.cuts(), j.outside()[:deck])
	pairs := overlaps(history)
	lost := j.judge(history)
	if len(pairs) == 0 || lost == 0 {
		t.Errorf("%d holds overlapped and %d updates were lost: the harness does not bite", len(pairs), lost)
	}
	if len(pairs) > 0 {
		t.Logf("one overlap: %+v", pairs[0])
	}
}

// outside are faults beneath one holder at a time.
func (j *jepsen) outside() []fault {
	// The holder is caught at its read, and gets its answer when somebody else has
	// written.
	within := func(do func(v Visit)) bool {
		done := false
		return j.store.catch(j.unaware, j.TTL/4, func(v Visit) {
			do(v)
			done = j.store.overtaken(v, j.TTL/4)
		}) && done
	}
	return []fault{
		{"locks deleted", func(r *rand.Rand) bool {
			return within(func(v Visit) {
				for _, node := range r.Perm(jepsenNodes)[:3+r.IntN(3)] {
					if _, err := j.servers[node].Do("DEL", "lock:"+v.Name); err != nil {
						j.Error(err)
					}
				}
			})
		}},
		{"majority emptied and kept away", func(r *rand.Rand) bool {
			return within(func(Visit) {
				nodes := r.Perm(jepsenNodes)[:3]
				j.refuse(true, nodes...)
				for _, node := range nodes {
					_ = j.servers[node].RestartEmpty()
				}
				time.Sleep(guard)
				j.refuse(false, nodes...)
			})
		}},
	}
}
