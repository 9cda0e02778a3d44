// Many who want the same lock at the same instant.

package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

func inShort(short, long int) int {
	if testing.Short() {
		return short
	}
	return long
}

// TestStampede is how many attempts the first winner needs of many who begin at once.
func TestStampede(t *testing.T) {
	clients := inShort(30, 100) // what a slow machine can serve within a node timeout
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			f := startFleet(t, nodes)
			attempts := make([]int, clients) // in this round: each client's own
			var all []*redlock.Client
			for i := range clients {
				all = append(all, f.open(redlock.WithTrace(&redlock.Trace{AttemptDone: func(e redlock.AttemptDone) {
					if e.Rounds > 0 {
						attempts[i]++
					}
				}})))
				mustUnlock(t, mustLock(t, mutexOf(t, all[i], "warm-up")))
			}
			var won []int
			var took []time.Duration
			for round := range inShort(10, 30) {
				clear(attempts)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				start, first := make(chan struct{}), atomic.Int64{}
				var wg sync.WaitGroup
				var began time.Time
				for i, c := range all {
					m := mutexOf(t, c, fmt.Sprint("round-", round))
					wg.Go(func() {
						<-start
						if l, err := m.Lock(ctx); err == nil {
							if first.CompareAndSwap(0, int64(attempts[i])) {
								took = append(took, time.Since(began))
							}
							cancel()
							_ = l.Unlock(context.Background())
						}
					})
				}
				time.Sleep(50 * time.Millisecond)
				began = time.Now()
				close(start)
				wg.Wait()
				cancel()
				won = append(won, int(first.Load()))
			}
			slices.Sort(won)
			slices.Sort(took)
			t.Logf("%d nodes: the winner's attempts %v, first grant after p50 %v max %v", nodes, won, took[len(took)/2], took[len(took)-1])
			if worst := won[len(won)-1]; worst > 5 || won[0] == 0 {
				t.Errorf("the winner needed %d attempts", worst)
			}
		})
	}
}
