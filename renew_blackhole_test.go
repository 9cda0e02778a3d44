// A holder whose packets are dropped: its lease ends at the local deadline, and
// before anybody else can have the lock, whenever that begins.

package redlock_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestRenewBlackhole lets the fault begin at every phase of two renewals, so
// also with commands or replies on their way.
func TestRenewBlackhole(t *testing.T) {
	const every, way = time.Second, 12 * time.Millisecond
	for _, f := range []fault{lineHanging, lineMute, lineRefused, lineBroken} {
		for _, nodes := range []int{3, 5} {
			step := 20 * time.Millisecond
			switch {
			case testing.Short():
				step = 95 * time.Millisecond
			case f == lineHanging && nodes == 3:
				step = 5 * time.Millisecond
			}
			t.Run(fmt.Sprintf("%v=%d", f, nodes), func(t *testing.T) {
				t.Parallel()
				for phase := time.Duration(0); phase < 2*every+2*way && !t.Failed(); phase += step {
					synctest.Test(t, func(t *testing.T) {
						blackhole(t, phase, way, f, nodes)
					})
					if t.Failed() {
						t.Errorf("the fault began after %v", phase)
					}
				}
			})
		}
	}
}

func blackhole(t *testing.T, phase, way time.Duration, f fault, nodes int) {
	const ttl = 3 * time.Second
	c := redlocktest.New(5)
	var book logbook
	holder := join(t, c, way, way, redlock.WithTTL(ttl), book.trace())
	rival := join(t, c, 0, 0, redlock.WithTTL(ttl), pause(100*time.Millisecond))

	lease := holder.lock("a")
	time.Sleep(phase)
	holder.set(f, nodes)

	ended := make(chan time.Time, 1)
	go func() {
		<-lease.Done()
		ended <- time.Now()
	}()
	next := rival.lock("a") // as soon as it can be had
	if !isDone(lease) {
		t.Errorf("a second client holds the lock, and the lease has not ended; %v remain", lease.Remaining())
	}
	taken := time.Now()
	at := <-ended
	if deadline := lease.Deadline(); !at.Equal(deadline) {
		t.Errorf("the lease ended %v after its deadline", at.Sub(deadline))
	}
	if !at.Before(taken) {
		t.Errorf("the lease ended %v after the lock was taken", at.Sub(taken))
	}
	wantLost(t, lease, redlock.ErrExpired, redlock.ErrNoQuorum)
	isNot(t, lease.Err(), redlock.ErrTaken, redlock.ErrNotHeld)
	book.lost(t, 1)

	// What was on its way may arrive, but nothing more is sent.
	for i := range c.Len() {
		for _, call := range c.Node(i).Calls() {
			if call.Value == fmt.Sprintf("%s.%d", lease.Token(), i) && call.Op != redlocktest.Release && call.At.After(at.Add(way)) {
				t.Errorf("%s was sent %v after the end", call.Op, call.At.Sub(at))
			}
		}
	}
	renewals := len(book.read().renewals)
	holder.set(lineIntact, nodes)
	time.Sleep(2 * ttl)
	wantLost(t, lease, redlock.ErrExpired, redlock.ErrNoQuorum) // for ever
	if n := len(book.read().renewals) - renewals; n > 0 {
		t.Errorf("%d renewals after the loss", n)
	}
	noErr(t, next.Err())
	mustUnlock(t, next)
	synctest.Wait()
	for i := range c.Len() {
		if value, _, ok := c.Node(i).Get("lock:a"); ok {
			t.Errorf("node %d still has the lock for %q", i, value)
		}
	}
}

// TestRenewBlackholeReal does it with real servers, to several leases at once,
// each at another phase of its renewals.
func TestRenewBlackholeReal(t *testing.T) {
	const leases, ttl = 10, 2 * time.Second
	for _, f := range []fault{lineHanging, lineMute, lineRefused} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			servers := startProxied(t, 5)
			var book logbook
			holder := servers.open(redlock.WithTTL(ttl), book.trace())
			direct := &fleet{t: t, servers: servers.servers}
			rival := direct.open(redlock.WithTTL(ttl), pause(20*time.Millisecond))
			warm(t, holder)
			warm(t, rival)

			var held []*redlock.Lease
			for i := range leases {
				held = append(held, mustLock(t, mutexOf(t, holder, fmt.Sprint(i))))
				time.Sleep(ttl / 3 / leases)
			}
			time.Sleep(ttl) // all have been renewed
			for _, l := range held {
				noErr(t, l.Err())
			}
			began := time.Now()
			for i, p := range servers.proxies {
				switch {
				case f == lineHanging:
					p.Blackhole(true)
				case f == lineMute:
					p.Mute(true)
				case i < 3:
					p.Refuse(true)
				}
			}
			type end struct {
				name string
				late time.Duration
				err  error
			}
			ends := make(chan end, leases)
			for _, l := range held {
				go func() {
					<-l.Done()
					ends <- end{name: l.Name(), late: time.Since(l.Deadline()), err: l.Err()}
				}()
			}
			nexts := make(chan string, leases)
			for i, l := range held {
				m := mutexOf(t, rival, fmt.Sprint(i))
				go func() {
					next := mustLockFrom(m)
					if err := l.Err(); err == nil {
						nexts <- fmt.Sprintf("lease %d is held by two, %v after the fault", i, time.Since(began))
					} else if next == nil {
						nexts <- fmt.Sprintf("lease %d was not to be had", i)
					} else {
						nexts <- ""
					}
				}()
			}
			var latest time.Duration
			for range leases {
				e := <-ends
				latest = max(latest, e.late)
				is(t, e.err, redlock.ErrLost, redlock.ErrExpired)
				// Without a failed renewal before the end, as on a machine that stood
				// still for a second, nobody knows that there was no quorum.
				if slices.ContainsFunc(book.read().renewals, func(r redlock.Renewal) bool {
					return r.Name == e.name && r.Err != nil && r.Validity > 0
				}) {
					is(t, e.err, redlock.ErrNoQuorum)
				}
			}
			for range leases {
				if problem := <-nexts; problem != "" {
					t.Error(problem)
				}
			}
			// How exact a timer is, is the machine's matter; that there is no
			// other delay is seen in simulated time.
			t.Logf("the latest end of a context: %v after the deadline", latest)
			if latest > 500*time.Millisecond {
				t.Errorf("a context ended %v after its deadline", latest)
			}
			book.lost(t, leases)
			for i, p := range servers.proxies {
				p.Blackhole(false)
				if i < 3 {
					p.Refuse(false)
				}
			}
		})
	}
}
