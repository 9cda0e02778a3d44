// A lock on five containers: all well, and two of them paused.

package integration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/integration/internal/dockernode"
)

// TestDockerLock: lock, extend and unlock, on all nodes.
func TestDockerLock(t *testing.T) {
	t.Parallel()
	f := startFleet(t, dockernode.Five(none)...)
	c, other := f.open(), f.open()
	l := f.lock(mutexOf(t, c, "a"))
	f.settled(l, 5)
	if _, err := mutexOf(t, other, "a").TryLock(t.Context()); err == nil {
		t.Fatal("two hold the lock")
	} else {
		is(t, err, redlock.ErrTaken)
	}
	before := l.Deadline()
	if err := l.Extend(t.Context()); err != nil || !l.Deadline().After(before) {
		t.Errorf("Extend: %v, and moves the deadline by %v", err, l.Deadline().Sub(before))
	}
	f.unlock(l)
	f.free("a", quick)
	next := f.lock(mutexOf(t, other, "a"))
	if next.FencingToken() <= l.FencingToken() {
		t.Errorf("fencing token %d after %d", next.FencingToken(), l.FencingToken())
	}
	f.unlock(next)
	is(t, l.Err(), redlock.ErrUnlocked)
}

// TestDockerPause: with two of five nodes paused nothing waits for them, neither
// for the node timeout nor for the five seconds of the driver.
func TestDockerPause(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
		t.Parallel() // otherwise alone, for the sake of the figures
	}
	f := startFleet(t, dockernode.Five(none)...)
	c := f.open(redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(3*time.Second))
	f.warm(c)
	held := f.lock(mutexOf(t, c, "held"))
	f.settled(held, 5)
	var names int
	// One name for each round: a paused node still has what it was to release.
	cycles := func() (lock, extend, unlock []time.Duration) {
		for range rounds {
			names++
			m := mutexOf(t, c, fmt.Sprint("m", names))
			var l *redlock.Lease
			lock = append(lock, f.prompt("TryLock", func() (err error) { l, err = m.TryLock(t.Context()); return err }))
			extend = append(extend, f.prompt("Extend", func() error { return l.Extend(t.Context()) }))
			unlock = append(unlock, f.prompt("Unlock", func() error { return l.Unlock(t.Context()) }))
		}
		return lock, extend, unlock
	}
	lock, extend, unlock := cycles()
	f.each((*dockernode.Node).Pause, 1, 3)
	f.prompt("Extend of a lock that all granted", func() error { return held.Extend(t.Context()) })
	slowLock, slowExtend, slowUnlock := cycles()
	f.prompt("Unlock of a lock that all granted", func() error { return held.Unlock(t.Context()) })
	f.each((*dockernode.Node).Unpause, 1, 3)

	t.Logf("two of five paused / all well, %d each:", rounds)
	t.Logf("TryLock %s", ratio(slowLock, lock))
	t.Logf("Extend  %s", ratio(slowExtend, extend))
	t.Logf("Unlock  %s", ratio(slowUnlock, unlock))
	// What the paused nodes execute now is followed by its release.
	for i := range names {
		f.free(fmt.Sprint("m", i+1), 10*time.Second)
	}
	f.free("held", 10*time.Second)
}

func ratio(slow, well []time.Duration) string {
	a, b := quantile(slow, 0.5), quantile(well, 0.5)
	return fmt.Sprintf("p50 %v / %v = %.2f, max %v / %v", round(a), round(b), float64(a)/float64(b),
		round(slices.Max(slow)), round(slices.Max(well)))
}

// quantile returns the smallest of ds that is not below a share q of them.
func quantile(ds []time.Duration, q float64) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
