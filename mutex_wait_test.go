// How Lock waits, how long, and when it gives up.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

func pauseOf(d time.Duration) redlock.Option {
	return redlock.WithBackoff(func(int, float64) time.Duration { return d })
}

// A waiter knows from the refusals when the holder's keys expire, and does not
// sleep past it.
func TestLockWakesForExpiry(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				s := simulate(t, n, pauseOf(time.Hour), redlock.WithTrace(&redlock.Trace{AttemptDone: func(redlock.AttemptDone) { attempts++ }}))
				occupy("x", 3*time.Second, s.all()...)
				d := took(func() {
					l, err := s.mutex("x").Lock(t.Context())
					noErr(t, err)
					noErr(t, l.Unlock(t.Context()))
				})
				if d < 3*time.Second || d > 3*time.Second+10*time.Millisecond {
					t.Errorf("waited %v for a lock that expires after 3s", d)
				}
				if attempts > 2 {
					t.Errorf("%d attempts", attempts)
				}
			})
		})
	}
}

// A holder that crashed with keys of different ages on the nodes is waited for
// until a quorum of them is free.
func TestLockWakesForQuorum(t *testing.T) {
	const never, free = 0, -1
	for _, c := range []struct {
		ages []int // of the nodes' keys, in seconds until they expire
		want time.Duration
	}{
		{[]int{1, 2, 3, 4, 5}, 3 * time.Second},
		{[]int{5, 4, 3, 2, 1}, 3 * time.Second},
		{[]int{1, 1, 100_000, free, free}, time.Second},
		{[]int{never, 2, 1, free, free}, time.Second},
		{[]int{never, never, 4, 3, 2}, 4 * time.Second},
		{[]int{2, 1, free}, time.Second},
		{[]int{3, 1, 2, free}, 2 * time.Second},
	} {
		t.Run(fmt.Sprint(c.ages), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, len(c.ages), pauseOf(24*time.Hour))
				for i, age := range c.ages {
					if age != free {
						occupy("x", time.Duration(age)*time.Second, s.Node(i))
					}
					s.Node(i).Delay(0, time.Duration(i)*time.Microsecond) // they answer in this order
				}
				d := took(func() {
					l, err := s.mutex("x").Lock(t.Context())
					noErr(t, err)
					_ = l.Unlock(t.Context())
				})
				if d < c.want || d > c.want+20*time.Millisecond {
					t.Errorf("waited %v for a quorum that is free after %v", d, c.want)
				}
			})
		})
	}
}

// A key that does not expire gives no hint, and neither does a failure.
func TestLockWaitsForBackoff(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(s *sim)
	}{
		{"for ever", func(s *sim) { occupy("x", 0, s.all()...) }},
		{"refused", func(s *sim) {
			for _, n := range s.all() {
				n.Refuse(true)
			}
		}},
		{"expires later", func(s *sim) { occupy("x", time.Hour, s.all()...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3, pauseOf(time.Second))
				c.setup(s)
				time.AfterFunc(2500*time.Millisecond, func() {
					s.heal()
					drop("x", s.all()...)
				})
				exactly(t, "lock", took(func() {
					l, err := s.mutex("x").Lock(t.Context())
					noErr(t, err)
					noErr(t, l.Unlock(t.Context()))
				}), 3*time.Second)
			})
		})
	}
}

// A Backoff is called once for each wait, with the attempts counted from 1 and a
// random number in [0, 1); what it returns is waited for.
func TestBackoffContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		var randoms []float64
		waits := []time.Duration{time.Second, 0, -time.Second, -1 << 63, 2 * time.Second}
		s := simulate(t, 3)
		c := openClient(t, s.linelessNodes(), redlock.WithMaxAttempts(6), redlock.WithBackoff(func(attempt int, random float64) time.Duration {
			attempts = append(attempts, attempt)
			randoms = append(randoms, random)
			return waits[attempt-1]
		}))
		occupy("x", 0, s.all()...)
		for range 2 { // each call of Lock counts for itself
			attempts = nil
			exactly(t, "lock", took(func() {
				_, err := mutexOf(t, c, "x").Lock(t.Context())
				is(t, err, redlock.ErrTaken)
			}), 3*time.Second)
			if !slices.Equal(attempts, []int{1, 2, 3, 4, 5}) {
				t.Errorf("attempts %v", attempts)
			}
		}
		slices.Sort(randoms)
		if randoms[0] < 0 || randoms[9] >= 1 || len(slices.Compact(randoms)) < 10 {
			t.Errorf("random numbers %v", randoms)
		}
	})
}

func TestMaxAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		s := simulate(t, 3, redlock.WithTrace(&redlock.Trace{AttemptDone: func(e redlock.AttemptDone) {
			attempts++
			if e.Attempt != attempts {
				t.Errorf("attempt %d is numbered %d", attempts, e.Attempt)
			}
		}}))
		occupy("x", 0, s.all()...)
		for _, most := range []int{1, 2, 7} {
			attempts = 0
			_, err := s.mutex("x", redlock.WithMaxAttempts(most)).Lock(t.Context())
			is(t, err, redlock.ErrTaken)
			if attempts != most {
				t.Errorf("%d attempts of %d", attempts, most)
			}
			attempts = 0
			exactly(t, "try", took(func() {
				_, err := s.mutex("x", redlock.WithMaxAttempts(most)).TryLock(t.Context())
				is(t, err, redlock.ErrTaken)
			}), 0)
			if attempts != 1 {
				t.Errorf("TryLock made %d attempts", attempts)
			}
		}
	})
}

// Where so many nodes refuse for good that no quorum is left, waiting is useless.
func TestLockPermanentFailure(t *testing.T) {
	noAuth := errors.New("NOAUTH Authentication required.")
	forbid := func(n *redlocktest.Node) { n.FailWith(noAuth, redlock.Forbidden) }
	list := func(n *redlocktest.Node) { n.SetList("lock:x") }
	refuse := func(n *redlocktest.Node) { n.Refuse(true) }
	oom := func(n *redlocktest.Node) { n.FailWith(errors.New("OOM"), redlock.Rejected) }
	hold := func(n *redlocktest.Node) { occupy("x", 0, n) }
	for _, c := range []struct {
		name  string
		nodes []func(*redlocktest.Node)
		final bool
	}{
		{"authentication", []func(*redlocktest.Node){forbid, forbid, forbid}, true},
		{"wrong type", []func(*redlocktest.Node){list, list, list}, true},
		{"some of each", []func(*redlocktest.Node){list, forbid, list}, true},
		{"a minority", []func(*redlocktest.Node){forbid, forbid}, false},
		{"a minority, and others refuse connections", []func(*redlocktest.Node){forbid, list, refuse, refuse}, false},
		{"a minority, and others are taken", []func(*redlocktest.Node){forbid, forbid, hold, hold, hold}, false},
		{"connections refused", []func(*redlocktest.Node){refuse, refuse, refuse}, false},
		{"out of memory", []func(*redlocktest.Node){oom, oom, oom}, false},
		{"taken", []func(*redlocktest.Node){hold, hold, hold}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 5, pauseOf(time.Second))
				for i, f := range c.nodes {
					f(s.Node(i))
				}
				time.AfterFunc(time.Minute+time.Second/2, func() {
					s.heal()
					drop("x", s.all()...)
				})
				var l *redlock.Lease
				var err error
				d := took(func() { l, err = s.mutex("x").Lock(t.Context()) })
				if c.final {
					exactly(t, "lock", d, 0)
					is(t, err, redlock.ErrNoQuorum)
					isNot(t, err, redlock.ErrTaken)
					return
				}
				noErr(t, err)
				noErr(t, l.Unlock(t.Context()))
				if want := time.Minute + time.Second; c.name != "a minority" && d != want {
					t.Errorf("it took %v, want %v", d, want)
				}
			})
		})
	}
}

// Many contenders for one lock take turns, and all get it.
func TestLockContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, each, rounds = 4, 4, 5
		cluster := redlocktest.New(5)
		for i, n := range []time.Duration{1, 2, 3, 5, 40} {
			cluster.Node(i).Delay(n*time.Millisecond/2, n*time.Millisecond/2)
		}
		var mu sync.Mutex
		inside, total := 0, 0
		var wg sync.WaitGroup
		for range clients {
			client, err := redlock.New(cluster.Nodes())
			noErr(t, err)
			defer func() { noErr(t, client.Close()) }()
			for range each {
				m := mutexOf(t, client, "x")
				wg.Go(func() {
					for range rounds {
						if err := m.Do(t.Context(), func(context.Context, *redlock.Lease) error {
							mu.Lock()
							inside++
							total++
							if inside != 1 {
								t.Errorf("%d holders at once", inside)
							}
							mu.Unlock()
							time.Sleep(5 * time.Millisecond)
							mu.Lock()
							inside--
							mu.Unlock()
							return nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if total != clients*each*rounds {
			t.Errorf("%d turns", total)
		}
	})
}
