// What was measured to go wrong with redsync while nodes are silent or slow, as M1
// to M15 in the project's notes, once more and beside what this library does. What
// a peer does is logged, and need not stay so.

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

// redsyncClients are the options of go-redis that decide whether a peer can heed
// deadlines.
var redsyncClients = map[string]func(*redis.Options){
	"redsync":                        nil,
	"redsync, ContextTimeoutEnabled": heedful,
}

// M1, M2, M3: one of five nodes falls silent. redsync waits for it for the driver's
// five seconds, by which the lock may have expired.
func TestProxyOneSilent(t *testing.T) {
	t.Parallel()
	r := newRig(t, 5)
	for _, ttl := range []time.Duration{8 * time.Second, 4 * time.Second} {
		p := r.network()
		// Renewal does not come to the aid of Extend.
		c := r.open(p.addrs(), redlock.WithTTL(ttl), redlock.WithNodeTimeout(3*time.Second), redlock.WithoutRenewal())
		p[2].Silence()
		defer heal(p)
		m := mutexOf(t, c, fmt.Sprint("ours", ttl))
		prompt := (&fleet{T: t}).prompt
		var l *redlock.Lease
		lock := prompt("TryLock", func() (err error) { l, err = m.TryLock(t.Context()); return err })
		extend := prompt("Extend", func() error { return l.Extend(t.Context()) })
		unlock := prompt("Unlock", func() error { return l.Unlock(t.Context()) })
		t.Logf("redlock, TTL %v: lock %v, extend %v, unlock %v", ttl, round(lock), round(extend), round(unlock))
	}
	if testing.Short() {
		t.Log("NOT MEASURED with -short: redsync, which waits for five seconds")
		return
	}
	var peers sync.WaitGroup
	defer peers.Wait()
	for kind, change := range redsyncClients {
		for _, expiry := range []time.Duration{8 * time.Second, 4 * time.Second} {
			p := r.network()
			m := r.peer(p.addrs(), change).NewMutex(fmt.Sprint(kind, expiry), redsync.WithExpiry(expiry), redsync.WithTries(1))
			p[2].Silence()
			peers.Go(func() {
				lock, lockErr := stopwatch(m.Lock)
				extend, extendErr := stopwatch(func() error { _, err := m.Extend(); return err })
				unlock, unlockErr := stopwatch(func() error { _, err := m.Unlock(); return err })
				t.Logf("%s, expiry %v: lock %v (%s), extend %v (%s), unlock %v (%s)", kind, expiry,
					round(lock), brief(lockErr), round(extend), brief(extendErr), round(unlock), brief(unlockErr))
			})
		}
	}
}

// brief is the first line of an error.
func brief(err error) string {
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, redsync.ErrExtendFailed):
		return "ErrExtendFailed"
	}
	return fmt.Sprintf("%.60q", err.Error())
}

// M6, M7: a caller's context ends after 50 ms, and two of three nodes answer after
// 400 ms. redsync leaves its keys behind, or reports the lock acquired.
func TestProxyContextEnds(t *testing.T) {
	t.Parallel()
	const wait, delay, nodeTimeout = 50 * time.Millisecond, 400 * time.Millisecond, time.Second
	r := newRig(t, 3)
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		t.Cleanup(cancel)
		return ctx
	}
	for kind, change := range redsyncClients {
		p := r.network()
		peer := r.peer(p.addrs(), change)
		p[1].Delay(delay)
		p[2].Delay(delay)
		m := peer.NewMutex(kind, redsync.WithExpiry(8*time.Second), redsync.WithTries(1))
		d, err := stopwatch(func() error { return m.LockContext(soon()) })
		time.Sleep(2 * delay) // what was on its way has arrived
		t.Logf("%s: %s after %v; keys left on %d of 3 nodes", kind, brief(err), round(d), len(r.keys(kind)))
		for _, s := range r.servers {
			_, _ = s.Do("DEL", kind)
		}
	}

	p := r.network()
	c := r.open(p.addrs(), redlock.WithTTL(8*time.Second), redlock.WithNodeTimeout(nodeTimeout))
	m := mutexOf(t, c, "ours")
	p[1].Delay(delay)
	p[2].Delay(delay)
	var l *redlock.Lease
	d, err := stopwatch(func() (err error) { l, err = m.TryLock(soon()); return err })
	is(t, err, context.DeadlineExceeded)
	if l != nil || d < wait || d > delay {
		t.Errorf("%v, %v after %v", l, err, d)
	}
	time.Sleep(2 * delay)
	r.free("lock:", 2*nodeTimeout)
	t.Logf("redlock: %v after %v; keys left on %d of 3 nodes", err, round(d), len(r.keys("lock:")))
	heal(p)
	r.unlock(r.lock(m))
}

// M2, M15 and hazard 16: all packets are dropped. Whatever is called returns when its
// context ends, or with the node timeout, and not with the driver's five seconds. The
// key goes when the nodes are back.
func TestProxyDropped(t *testing.T) {
	t.Parallel()
	const nodeTimeout, wait = 300 * time.Millisecond, 50 * time.Millisecond
	r := newRig(t, 3)
	contexts := map[string]struct {
		open func() (context.Context, context.CancelFunc)
		min  time.Duration
		errs []error
	}{
		"deadline": {
			func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), wait) },
			wait,
			[]error{context.DeadlineExceeded},
		},
		"cancelled": {
			func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(wait, cancel)
				return ctx, cancel
			},
			wait,
			[]error{context.Canceled},
		},
		"no end": {
			func() (context.Context, context.CancelFunc) { return t.Context(), func() {} },
			nodeTimeout,
			[]error{redlock.ErrNoQuorum, redlock.ErrNodeTimeout},
		},
	}
	for name, kind := range contexts {
		p := r.network()
		c := r.open(p.addrs(), redlock.WithTTL(8*time.Second), redlock.WithNodeTimeout(nodeTimeout), redlock.WithoutRenewal())
		l := r.lock(mutexOf(t, c, "held"))
		r.settled(l, 3)
		for i := range p {
			p[i].Silence()
		}
		returns := func(what string, f func(ctx context.Context) error) {
			t.Helper()
			ctx, cancel := kind.open()
			defer cancel()
			d, err := stopwatch(func() error { return f(ctx) })
			is(t, err, kind.errs...)
			isNot(t, err, redlock.ErrTaken)
			if d < kind.min || d > kind.min+quick {
				t.Errorf("%s, %s: after %v, want %v", name, what, d, kind.min)
			}
			t.Logf("redlock, context %s: %s after %v", name, what, round(d))
		}
		returns("TryLock", func(ctx context.Context) error { _, err := mutexOf(t, c, "other").TryLock(ctx); return err })
		returns("Extend", l.Extend)
		returns("Unlock", l.Unlock)
		is(t, l.Err(), redlock.ErrUnlocked)
		heal(p)
		r.free("lock:", 2*nodeTimeout+quick)
	}
	if testing.Short() {
		t.Log("NOT MEASURED with -short: redsync, which waits for five seconds")
		return
	}
	var peers sync.WaitGroup
	defer peers.Wait()
	for kind, change := range redsyncClients {
		p := r.network()
		m := r.peer(p.addrs(), change).NewMutex(kind, redsync.WithExpiry(20*time.Second))
		if err := m.Lock(); err != nil {
			t.Fatal(err)
		}
		for i := range p {
			p[i].Silence()
		}
		peers.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), wait)
			defer cancel()
			d, err := stopwatch(func() error { _, err := m.UnlockContext(ctx); return err })
			t.Logf("%s, context of %v: unlock after %v (%s)", kind, wait, round(d), brief(err))
		})
	}
}
