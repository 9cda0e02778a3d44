// When a fan-out returns, and where each reply goes. Time is a bubble's, so every
// instant below is exact, and a goroutine left over fails the test.

package quorum_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

func TestGatherReturnsOnceDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRound(wins(5, 3), 150*ms, 1*ms, 70*ms, 20*ms, 90*ms)
		start := time.Now()
		o, err := r.gather(t.Context(), nil)
		if o != quorum.Won || err != nil {
			t.Errorf("%v, %v, want Won", o, err)
		}
		if d := time.Since(start); d != 70*ms {
			t.Errorf("took %v, want the 70 ms of the third fastest node", d)
		}
		r.wantCounted(t, 1, 3, 2)
		r.wantLate(t)
		time.Sleep(30 * ms)
		r.wantLate(t, 4)
		time.Sleep(time.Minute)
		r.wantLate(t, 0)
	})
}

func TestGatherReturnsOnceLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := quorum.NewTally(4, quorum.Size(4))
		r := newRound(func(int) quorum.Outcome { return tally.No() }, 4*ms, 3*ms, 2*ms, 1*ms)
		start := time.Now()
		o, err := r.gather(t.Context(), nil)
		if o != quorum.Lost || err != nil {
			t.Errorf("%v, %v, want Lost", o, err)
		}
		if d := time.Since(start); d != 2*ms {
			t.Errorf("took %v, want the 2 ms of the second refusal", d)
		}
		r.wantCounted(t, 3, 2)
		time.Sleep(time.Second)
		r.wantLate(t, 0, 1)
	})
}

// TestGatherArrivedButNotCounted: all replies are there before the first is
// counted. Those after the decision must be handed on, in order, not dropped.
func TestGatherArrivedButNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRound(wins(5, 3), -1, -1, -1, -1, -1)
		if o, err := r.gather(t.Context(), nil); o != quorum.Won || err != nil {
			t.Errorf("%v, %v, want Won", o, err)
		}
		r.wantCounted(t, 0, 1, 2)
		if a, b := <-r.late, <-r.late; a != 3 || b != 4 {
			t.Errorf("late: %d, %d, want 3, 4", a, b)
		}
		r.wantLate(t)
	})
}

func TestGatherTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRound(wins(3, 2), 1*ms, time.Hour, time.Hour)
		start := time.Now()
		o, err := r.gather(t.Context(), after(50*ms))
		if o != quorum.Pending || err != nil {
			t.Errorf("%v, %v, want Pending and no error", o, err)
		}
		if d := time.Since(start); d != 50*ms {
			t.Errorf("took %v, want 50 ms", d)
		}
		r.wantCounted(t, 0)
		time.Sleep(2 * time.Hour)
		r.wantCounted(t, 0)
		r.wantLate(t, 1, 2)
	})
}

func TestGatherContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("the user went home")
		ctx, cancel := context.WithCancelCause(t.Context())
		r := newRound(wins(3, 2), 1*ms, time.Hour, time.Hour)
		time.AfterFunc(50*ms, func() { cancel(why) })
		start := time.Now()
		o, err := r.gather(ctx, after(time.Minute))
		if o != quorum.Pending || !errors.Is(err, why) {
			t.Errorf("%v, %v, want Pending, %v", o, err, why)
		}
		if d := time.Since(start); d != 50*ms {
			t.Errorf("took %v, want 50 ms", d)
		}
		time.Sleep(2 * time.Hour)
		r.wantCounted(t, 0)
		r.wantLate(t, 1, 2)
	})
}

// TestGatherBothEnds: when ctx has ended, that is the reason given, whichever
// of the two was noticed first.
func TestGatherBothEnds(t *testing.T) {
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		timeout := make(chan struct{})
		close(timeout)
		r := newRound(pending, -1)
		if o, err := r.gather(ctx, timeout); o != quorum.Pending || !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, %v, want Pending, context.Canceled", o, err)
		}
	}
}

// TestGatherPrefersArrived: replies that are there win over a timeout and a ctx
// that ended before, whichever of the two ends it.
func TestGatherPrefersArrived(t *testing.T) {
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		timeout := make(chan struct{})
		close(timeout)
		r := newRound(wins(5, 3), -1, -1, -1)
		if o, err := r.gather(ctx, timeout); o != quorum.Won || err != nil {
			t.Fatalf("%v, %v, want Won", o, err)
		}
		r.wantCounted(t, 0, 1, 2)
	}
}

// TestGatherArrivesWithTheEnd: the deciding reply and the end of time come
// while count is busy, so that Collect finds both at once. Without a last look
// at the queue, it would lose the reply about every other time.
func TestGatherArrivesWithTheEnd(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var timeout <-chan struct{}
			if i%2 == 0 {
				timeout = after(3 * ms)
			} else {
				time.AfterFunc(3*ms, cancel)
			}
			tally := quorum.NewTally(3, 2)
			r := newRound(func(int) quorum.Outcome {
				o := tally.Yes()
				time.Sleep(10 * ms)
				return o
			}, 1*ms, 2*ms)
			if o, err := r.gather(ctx, timeout); o != quorum.Won || err != nil {
				t.Fatalf("%v, %v, want Won", o, err)
			}
		})
	}
}
