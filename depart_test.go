// When flights depart, in bubbles.

package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestDepartEarlier: who waits while many flights are stuck leaves soon after the last when
// most of them have landed, and not when he would have if they had not.
func TestDepartEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		s := simulate(t, 1, redlock.WithNodeTimeout(time.Hour), redlock.WithTTL(3*time.Hour), redlock.WithoutRenewal())
		var mu sync.Mutex
		var sizes []int
		var last time.Time
		few, all := make(chan struct{}), make(chan struct{})
		s.client.Ferry(0, func(commands int) {
			mu.Lock()
			sizes, last = append(sizes, commands), time.Now()
			n := len(sizes)
			mu.Unlock()
			switch {
			case n > 24:
			case n > 22:
				<-all
			default:
				<-few
			}
		})
		seen := func() ([]int, time.Time) {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(sizes), last
		}
		var group sync.WaitGroup
		try := func(i int) {
			group.Go(func() {
				if l, err := s.mutex(fmt.Sprint("x", i)).TryLock(context.Background()); err == nil {
					_ = l.Unlock(context.Background())
				}
			})
		}
		for i := range 23 {
			time.Sleep(9 * ms)
			try(i)
			synctest.Wait()
		}
		try(23)
		try(24)
		time.Sleep(9 * ms) // they are on the last
		before, departed := seen()
		if want := append(slices.Repeat([]int{1}, 23), 2); !slices.Equal(before, want) {
			t.Errorf("flights of %v, want %v", before, want)
		}
		try(25)
		synctest.Wait()
		close(few) // two are left
		time.Sleep(9 * ms)
		after, next := seen()
		if len(after) != 25 || next.Sub(departed) != 8*ms {
			t.Errorf("%d flights have departed, the last %v after the one before", len(after), next.Sub(departed))
		}
		close(all)
		group.Wait()
	})
}

// TestDepartFar: on a long way flights follow each other closely, and none waits until the
// one before has landed.
func TestDepartFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const way, many = 48 * time.Millisecond, 100
		s := simulate(t, 1, redlock.WithoutRenewal())
		var underWay, highest atomic.Int64
		s.client.Carry(0, func(int) {
			higher(&highest, underWay.Add(1))
			time.Sleep(way)
			underWay.Add(-1)
		})
		for i := range 2 {
			mustUnlock(t, s.lock(fmt.Sprint("first", i))) // shows how long the way is
			time.Sleep(time.Second)
		}
		var group sync.WaitGroup
		for i := range many {
			group.Go(func() {
				time.Sleep(time.Duration(i) * 2 * way / many)
				d := took(func() { mustUnlock(t, s.lock(fmt.Sprint("x", i))) })
				if d > 2*(way+way/20) {
					t.Errorf("lock and unlock took %v", d)
				}
			})
		}
		group.Wait()
		if n := highest.Load(); n < 16 || n > 26 {
			t.Errorf("%d flights at once", n)
		}
	})
}

// TestDepartUnwanted: a command that has to go alone after its flight does not go if the
// lock was given back meanwhile.
func TestDepartUnwanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		s.client.Ferry(2, func(int) { time.Sleep(time.Millisecond) })
		mustUnlock(t, s.lock("x")) // with the two others
		time.Sleep(time.Second)
		for _, c := range s.Node(2).Calls() {
			if c.Op != redlocktest.Release {
				t.Errorf("the node was sent %v", c)
			}
		}
	})
}
