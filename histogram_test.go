// Quantiles of a histogram, against those of the durations themselves.

package redlock_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestLatency: on durations of many kinds, what a summary says is as near as promised.
func TestLatency(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func(i int) time.Duration{
		"zero":          func(int) time.Duration { return 0 },
		"one":           func(int) time.Duration { return 70 * time.Millisecond },
		"uniform":       func(int) time.Duration { return time.Duration(random.Int64N(int64(time.Second))) },
		"exponential":   func(int) time.Duration { return time.Duration(random.ExpFloat64() * float64(time.Millisecond)) },
		"all sizes":     func(int) time.Duration { return time.Duration(math.Exp2(random.Float64() * 47)) },
		"small":         func(int) time.Duration { return time.Duration(random.Int64N(40)) },
		"powers":        func(i int) time.Duration { return 1 << (i % 48) },
		"below powers":  func(i int) time.Duration { return 1<<(i%47+1) - 1 },
		"two":           func(i int) time.Duration { return []time.Duration{time.Millisecond, time.Minute}[i%2] },
		"one in twenty": func(i int) time.Duration { return []time.Duration{time.Millisecond, time.Minute}[min(i%20, 1)] },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 10, 99, 100, 101, 5000} {
				all := make([]time.Duration, n)
				for i := range all {
					all[i] = draw(i)
				}
				checkLatency(t, redlock.Summary(all), all)
			}
		})
	}
}

// TestLatencyExtremes: nothing recorded, and what no bucket is made for.
func TestLatencyExtremes(t *testing.T) {
	if l := redlock.Summary(nil); l.Count != 0 || l.Max != 0 || l.P99 != 0 || l.Mean != 0 || len(l.Buckets) == 0 {
		t.Errorf("of nothing: %+v", l)
	}
	if l := redlock.Summary([]time.Duration{-time.Second}); l.Count != 1 || l.Max != 0 || l.P99 != 0 {
		t.Errorf("of less than nothing: %+v", l)
	}
	if l := redlock.Summary([]time.Duration{math.MaxInt64}); l.Max != math.MaxInt64 || l.P50 != math.MaxInt64 {
		t.Errorf("of the longest: %+v", l)
	}
	// Held by a thousand for a month each: in nanoseconds the sum would not fit.
	months := slices.Repeat([]time.Duration{30 * 24 * time.Hour}, 1000)
	if l := redlock.Summary(months); l.Mean != months[0] || l.P50 != months[0] {
		t.Errorf("of months: %+v", l)
	}
}

// checkLatency compares a summary with the durations it is of.
func checkLatency(t *testing.T, l redlock.Latency, all []time.Duration) {
	t.Helper()
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	var sum time.Duration
	for _, d := range all {
		sum += d / 1000 // as it could overflow
	}
	near := func(what string, got, want time.Duration, share float64) {
		t.Helper()
		if off := math.Abs(float64(got - want)); off > share*float64(want)+1 {
			t.Errorf("of %d: %s %v, want %v", n, what, got, want)
		}
	}
	for q, got := range map[float64]time.Duration{0.5: l.P50, 0.9: l.P90, 0.99: l.P99} {
		near("quantile", got, all[int(math.Ceil(q*float64(n)))-1], 0.0625)
	}
	if l.Count != int64(n) || l.Max != all[n-1] {
		t.Errorf("of %d: %+v, want the longest %v", n, l, all[n-1])
	}
	if off := (l.Mean/1000 - sum/time.Duration(n)).Abs(); off > time.Nanosecond {
		t.Errorf("of %d: mean %v, want %v", n, l.Mean, 1000*sum/time.Duration(n))
	}
	if first, last := l.Buckets[0].Bound, l.Buckets[len(l.Buckets)-1].Bound; first != 65536 || last != 1<<36 {
		t.Errorf("buckets from %v to %v", first, last)
	}
	for _, b := range l.Buckets {
		want, _ := slices.BinarySearch(all, b.Bound)
		if b.Count != int64(want) {
			t.Errorf("of %d: %d below %v, want %d", n, b.Count, b.Bound, want)
		}
	}
}
