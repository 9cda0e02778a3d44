// One run in each period, although the job ends at once.

package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// hosts is n schedules of as many clients, on the same nodes.
func hosts(t *testing.T, cluster *redlocktest.Cluster, n int) []schedule {
	t.Helper()
	all := make([]schedule, n)
	for i := range all {
		client, err := redlock.New(cluster.Nodes())
		if err != nil {
			t.Fatal(err)
		}
		if all[i], err = newSchedule(client, "job"); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// period lets every host come once, each a little later than the one before, and
// returns how many ran the job.
func period(t *testing.T, all []schedule, apart time.Duration, run func(s schedule) (bool, error)) int32 {
	t.Helper()
	var ran atomic.Int32
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			done, err := run(s)
			if err != nil {
				t.Error(err)
			}
			if done {
				ran.Add(1)
			}
		})
	}
	wg.Wait()
	return ran.Load()
}

func quick(ctx context.Context, token int64) error {
	if token == 0 {
		return errors.New("no fencing token")
	}
	return ctx.Err()
}

// TestCronOnce: hosts that come together or seconds apart run the job once, which
// is over long before the last of them comes; and in the next period again.
func TestCronOnce(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Millisecond, 900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			all := hosts(t, redlocktest.New(5), 5)
			for i := range 3 {
				n := period(t, all, apart, func(s schedule) (bool, error) { return s.run(t.Context(), quick) })
				if n != 1 {
					t.Errorf("%v apart, period %d: %d runs", apart, i, n)
				}
				time.Sleep(2 * keep)
			}
		})
	}
}

// TestCronReleased shows what the lock is kept for: if it is released when the job is
// done, the hosts that come later run the job as well.
func TestCronReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := hosts(t, redlocktest.New(5), 5)
		n := period(t, all, 900*time.Millisecond, func(s schedule) (bool, error) {
			err := s.mutex.Do(t.Context(), func(ctx context.Context, l *redlock.Lease) error { return quick(ctx, l.FencingToken()) })
			return err == nil, err
		})
		if n != 5 {
			t.Errorf("%d runs: that was no test", n)
		}
	})
}

// TestCronSlow: a job that takes longer than the lock is kept is told before
// another host can begin.
func TestCronSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := hosts(t, redlocktest.New(5), 2)
		var running atomic.Int32
		job := func(ctx context.Context, _ int64) error {
			if n := running.Add(1); n != 1 {
				t.Errorf("%d run at once", n)
			}
			defer running.Add(-1)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		var runs atomic.Int32
		var wg sync.WaitGroup
		for _, s := range all {
			wg.Go(func() {
				for range 20 {
					ran, err := s.run(t.Context(), job)
					if ran && !errors.Is(err, redlock.ErrLost) {
						t.Errorf("the job ended with %v", err)
					}
					if ran {
						runs.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if runs.Load() < 4 {
			t.Errorf("%d runs: that was no test", runs.Load())
		}
	})
}

// TestCronNoQuorum: a host that cannot ask does not run the job, and says so.
func TestCronNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(5)
		for i := range 3 {
			cluster.Node(i).Refuse(true)
		}
		ran, err := hosts(t, cluster, 1)[0].run(t.Context(), quick)
		if ran || !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("ran %v, error %v", ran, err)
		}
	})
}
