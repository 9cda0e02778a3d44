//go:build unix

// A thousand who wait in one client of real servers.

package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestWaitRedisMany: a thousand who wait in one client cost the servers, and this
// process, what one does.
func TestWaitRedisMany(t *testing.T) {
	const span = 5 * time.Second
	f := startFleet(t, 5)
	held := mustLock(t, f.mutex("x", redlock.WithoutRenewal(), redlock.WithTTL(time.Minute)))
	f.settled(5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := f.mutex("x")
	sent := map[int]int{}
	var all []*waiting
	for _, n := range []int{1, 1000} {
		for len(all) < n {
			all = append(all, await(ctx, m))
		}
		f.attended()
		before, used := f.commands(), cpu()
		time.Sleep(span)
		sent[n] = f.commands() - before
		t.Logf("%d wait: %.1f commands a second to each node, %.1f ms of CPU a second", n,
			float64(sent[n])/5/span.Seconds(), float64((cpu()-used).Microseconds())/1000/span.Seconds())
	}
	if most := 5 * int(span/(30*time.Millisecond)); sent[1] > most || sent[1000] > most || sent[1] == 0 {
		t.Errorf("one sent %d commands, a thousand %d, want at most %d", sent[1], sent[1000], most)
	}
	cancel()
	for _, w := range all {
		<-w.done
		is(t, w.err, context.Canceled, redlock.ErrTaken)
	}
	mustUnlock(t, held)
	f.deserted()
}
