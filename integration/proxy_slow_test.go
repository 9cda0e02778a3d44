// How long acquiring and releasing take while a minority of nodes is silent or far
// away, here and with redsync, in one run and in turn.

package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/integration/internal/faultproxy"
)

const (
	farther     = time.Second // what the slow node's round trips take more
	slowTimeout = 5 * time.Second
	slowTTL     = 20 * time.Second
)

// TestProxyTwoSilent: two of five nodes swallow all bytes, those of new connections as
// well. Nobody waits for them.
func TestProxyTwoSilent(t *testing.T) {
	compareSlow(t, "two of five silent", slowTimeout, func(p path[*faultproxy.Proxy]) {
		p[1].Silence()
		p[3].Silence()
	})
}

// TestProxyOneFar: one of five nodes is a second farther away. Nobody waits for it, and
// its grant, which comes late, is kept.
func TestProxyOneFar(t *testing.T) {
	r := compareSlow(t, "one of five farther", farther, func(p path[*faultproxy.Proxy]) { p[2].Delay(farther) })
	p := r.network()
	c := r.open(p.addrs(), redlock.WithTTL(slowTTL), redlock.WithNodeTimeout(slowTimeout), redlock.WithoutRenewal())
	p[2].Delay(farther)
	defer heal(p)
	var l *redlock.Lease
	d, err := stopwatch(func() (err error) { l, err = mutexOf(t, c, "late").TryLock(t.Context()); return err })
	if err != nil || d > farther/2 {
		t.Fatalf("%v after %v", err, d)
	}
	if r.has(2, l) {
		t.Error("the grant did not come late")
	}
	r.settled(l, 5)
	time.Sleep(farther) // the answer has arrived as well
	if !r.has(2, l) {
		t.Error("a late grant was given back")
	}
	r.unlock(l)
	r.free("lock:late", 2*slowTimeout)
}

// A contestant is one library on one path. It returns how long each part of a cycle
// of locking and unlocking took.
type contestant func(name string) (lock, unlock time.Duration, err error)

func (r *rig) oursOn(addrs []string) contestant {
	c := r.open(addrs, redlock.WithTTL(slowTTL), redlock.WithNodeTimeout(slowTimeout), redlock.WithoutRenewal())
	return func(name string) (lock, unlock time.Duration, err error) {
		m, err := c.NewMutex(name)
		if err != nil {
			return 0, 0, err
		}
		var l *redlock.Lease
		lock, err = stopwatch(func() (err error) { l, err = m.TryLock(r.Context()); return err })
		if err == nil {
			unlock, err = stopwatch(func() error { return l.Unlock(r.Context()) })
		}
		return lock, unlock, err
	}
}

func (r *rig) theirsOn(addrs []string, opts ...redsync.Option) contestant {
	peer := r.peer(addrs, nil)
	opts = append(opts, redsync.WithExpiry(slowTTL))
	ctx := context.WithoutCancel(r.Context())
	return func(name string) (lock, unlock time.Duration, err error) {
		m := peer.NewMutex(fmt.Sprint("theirs", len(opts), name), opts...)
		lock, err = stopwatch(func() error { return m.TryLockContext(ctx) })
		if err == nil {
			unlock, err = stopwatch(func() error { _, err := m.UnlockContext(ctx); return err })
		}
		return lock, unlock, err
	}
}

// times are those of one contestant, round by round.
type times struct{ lock, unlock [][]time.Duration }

// compareSlow measures everybody without the fault and with it, in turn, and asserts
// that we do not wait, as somebody would for as long as given.
func compareSlow(t *testing.T, fault string, wait time.Duration, harm func(path[*faultproxy.Proxy])) *rig {
	t.Helper()
	r := newRig(t, 5)
	well, ill := r.network(), r.network()
	kinds := []struct {
		name  string
		waits bool // with the fault, so that it is measured once, by several at once
		on    func(addrs []string) contestant
	}{
		{"redlock", false, r.oursOn},
		{"redsync, WithFailFast", false, func(a []string) contestant { return r.theirsOn(a, redsync.WithFailFast(true)) }},
		{"redsync", true, func(a []string) contestant { return r.theirsOn(a) }},
	}
	fields := make([][2]contestant, len(kinds)) // without and with the fault
	for k, kind := range kinds {
		fields[k] = [2]contestant{kind.on(well.addrs()), kind.on(ill.addrs())}
	}
	harm(ill)
	t.Cleanup(func() { heal(ill) })

	for _, load := range []struct{ callers, cycles int }{{1, 20}, {16, 5}} {
		rounds := 15
		if testing.Short() {
			rounds, load.callers, load.cycles = 6, min(load.callers, 4), (load.cycles+1)/2
		}
		results := make([][2]times, len(kinds))
		for i := range rounds + 1 {
			for k, kind := range kinds {
				for with, field := range fields[k] {
					if with == 1 && kind.waits {
						continue
					}
					lock, unlock := measure(t, field, load.callers, load.cycles)
					if i > 0 { // the first round was for the connections
						got := &results[k][with]
						got.lock, got.unlock = append(got.lock, lock), append(got.unlock, unlock)
					}
				}
			}
		}
		t.Logf("%d callers: all well | %s | ratio of p50", load.callers, fault)
		for k, kind := range kinds {
			well, ill := results[k][0], results[k][1]
			if kind.waits {
				t.Logf("  %-22s lock   %s", kind.name, spread(slices.Concat(well.lock...)))
				t.Logf("  %-22s unlock %s", kind.name, spread(slices.Concat(well.unlock...)))
				continue
			}
			t.Logf("  %-22s lock   %s", kind.name, versus(well.lock, ill.lock))
			t.Logf("  %-22s unlock %s", kind.name, versus(well.unlock, ill.unlock))
		}
		ours := results[0]
		for part, got := range map[string][2][][]time.Duration{
			"TryLock": {ours[0].lock, ours[1].lock}, "Unlock": {ours[0].unlock, ours[1].unlock},
		} {
			// Loosely, for the machine may be busy, and a wait would be a thousandfold.
			if x := middleRatio(got[0], got[1]); x > 4 {
				t.Errorf("%d callers: %s takes %.2f times as long (medians)", load.callers, part, x)
			}
			all := slices.Concat(got[1]...)
			if d := quantile(all, 0.9); d > wait*3/4 {
				t.Errorf("%d callers: p90 of %s is %v", load.callers, part, d)
			}
			if d := quantile(all, 0.99); d > slowTimeout*3/4 {
				t.Errorf("%d callers: p99 of %s is %v", load.callers, part, d)
			}
		}
	}
	if !testing.Short() {
		lock, unlock := measure(t, fields[2][1], 16, 1)
		t.Logf("16 callers, once: %s", fault)
		t.Logf("  %-22s lock %s, unlock %s", kinds[2].name, spread(lock), spread(unlock))
	}
	return r
}

// names makes each cycle's name a new one. A release that is still on its way when
// redsync's fail-fast Unlock returns would refuse the next cycle of the same name.
var names atomic.Int64

// measure has callers go through cycles at one time.
func measure(t *testing.T, c contestant, callers, cycles int) (lock, unlock []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range cycles {
				a, b, err := c(fmt.Sprint("m", names.Add(1)))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				lock, unlock = append(lock, a), append(unlock, b)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return lock, unlock
}

// middleRatio is the middle of the rounds' ratios of medians: what the machine does
// to one round hardly moves it.
func middleRatio(well, ill [][]time.Duration) float64 {
	var ratios []float64
	for i := range well {
		ratios = append(ratios, float64(quantile(ill[i], 0.5))/float64(quantile(well[i], 0.5)))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func versus(well, ill [][]time.Duration) string {
	a, b := slices.Concat(well...), slices.Concat(ill...)
	return fmt.Sprintf("%s | %s | %.2f (of p99 %.2f)", spread(a), spread(b), middleRatio(well, ill),
		float64(quantile(b, 0.99))/float64(quantile(a, 0.99)))
}

func spread(ds []time.Duration) string {
	return fmt.Sprintf("p50 %v, p99 %v of %d", round(quantile(ds, 0.5)), round(quantile(ds, 0.99)), len(ds))
}
