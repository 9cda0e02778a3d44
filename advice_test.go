// Advice: what is said of the TTL, and when.

package redlock_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
)

// TestAdviceLatency: a TTL under ten times what renewals take is too short, once enough
// of them have been seen, and the logger is told once.
func TestAdviceLatency(t *testing.T) {
	for name, c := range map[string]struct {
		trip   time.Duration
		renews time.Duration
		opts   []redlock.Option
		want   time.Duration // TTL; 0: no advice
	}{
		"fast":             {90 * time.Millisecond, time.Minute, nil, 0},
		"slow":             {110 * time.Millisecond, time.Minute, nil, 1500 * time.Millisecond},
		"slow, few yet":    {110 * time.Millisecond, 5 * time.Second, nil, 0},
		"slow, long TTL":   {110 * time.Millisecond, 10 * time.Minute, []redlock.Option{redlock.WithTTL(30 * time.Second)}, 0},
		"slow, no renewal": {110 * time.Millisecond, time.Minute, []redlock.Option{redlock.WithoutRenewal()}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log := advised(t, nil)
				for _, n := range s.all() {
					n.Delay(c.trip/2, c.trip/2)
				}
				l := s.lock("x", append([]redlock.Option{redlock.WithTTL(time.Second)}, c.opts...)...)
				time.Sleep(c.renews)
				_ = l.Unlock(t.Context())
				advice := s.client.Stats().Advice
				if c.want == 0 {
					if len(advice) != 0 || log.count("redlock: the TTL") != 0 {
						t.Errorf("%+v; %s", advice, log)
					}
					return
				}
				if len(advice) != 1 || advice[0].Reason != redlock.AdviceLatency || advice[0].TTL != c.want || advice[0].Shortest != time.Second ||
					!strings.Contains(advice[0].Text, "WithTTL(1.5s) or more where it is 1s now") {
					t.Errorf("%+v", advice)
				}
				if log.count(advice[0].Text) > 1 || log.count(`"reason":"latency"`) != 1 || log.count(`"reason"`) != 1 {
					t.Errorf("the log says: %s", log)
				}
			})
		})
	}
}

// TestAdviceShortest: what is said is about the shortest TTL in use, whichever was first.
func TestAdviceShortest(t *testing.T) {
	for _, ttls := range [][]time.Duration{{time.Second, 2 * time.Second}, {2 * time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := advised(t, nil)
			for _, n := range s.all() {
				n.Delay(55*time.Millisecond, 55*time.Millisecond)
			}
			for i, ttl := range ttls {
				l := s.lock(fmt.Sprint("x", i), redlock.WithTTL(ttl))
				time.Sleep(time.Minute)
				_ = l.Unlock(t.Context())
			}
			if advice := s.client.Stats().Advice; len(advice) != 1 || advice[0].Shortest != time.Second {
				t.Errorf("TTLs of %v: %+v", ttls, advice)
			}
		})
	}
}

// TestAdvicePause: a pause of more than a quarter of the TTL is seen, by whichever timer
// is late, and what to do depends on how long it was.
func TestAdvicePause(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		opts  []redlock.Option
		want  time.Duration // TTL
		text  string        // part of it; empty: no advice
	}{
		"short":      {2 * time.Second, nil, 0, ""},
		"long":       {4 * time.Second, nil, 20 * time.Second, "WithTTL(20s) or more where it is 10s now"},
		"too long":   {2 * time.Minute, nil, 0, "more than 5m0s, so that this is to be mended instead"},
		"no renewal": {4 * time.Second, []redlock.Option{redlock.WithoutRenewal()}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clock.NewSkewed(clock.System, clock.Skew{})
				s, log := advised(t, clk)
				l := s.lock("x", c.opts...)
				time.Sleep(900 * time.Millisecond)
				clk.Suspend(c.pause)
				time.Sleep(5 * time.Second)
				_ = l.Unlock(t.Context())
				n := s.client.Stats()
				if d := n.LongestPause; d < c.pause-time.Second/2 || d > c.pause+time.Second/2 {
					t.Errorf("the longest pause was %v, want %v", d, c.pause)
				}
				if c.text == "" {
					if len(n.Advice) != 0 || log.count("redlock: the TTL") != 0 {
						t.Errorf("%+v; %s", n.Advice, log)
					}
					return
				}
				if len(n.Advice) != 1 || n.Advice[0].Reason != redlock.AdvicePause || n.Advice[0].TTL != c.want || !strings.Contains(n.Advice[0].Text, c.text) {
					t.Errorf("%+v", n.Advice)
				}
				if log.count(`"reason":"pause"`) != 1 || log.count(`"reason"`) != 1 {
					t.Errorf("the log says: %s", log)
				}
			})
		})
	}
}

// advised returns a client whose logger writes what is returned too.
func advised(t *testing.T, clk clock.Clock) (*sim, *warnings) {
	t.Helper()
	w := new(warnings)
	if clk == nil {
		clk = clock.System
	}
	return simulate(t, 3, redlock.WithClock(clk), redlock.WithLogger(slog.New(slog.NewJSONHandler(w, nil)))), w
}

type warnings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *warnings) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// count returns how often the log says something.
func (w *warnings) count(what string) int { return strings.Count(w.String(), what) }
