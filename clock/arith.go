// Arithmetic on durations that saturates instead of wrapping around: a clock
// that wraps around has gone back by centuries.

package clock

import (
	"math"
	"time"
)

const (
	earliest = time.Duration(math.MinInt64)
	latest   = time.Duration(math.MaxInt64)
)

func saturatingAdd(a, b time.Duration) time.Duration {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return latest
	case a < 0 && b < 0 && sum >= 0:
		return earliest
	}
	return sum
}

// scale returns d*rate, rounded down. Neither may be negative.
func scale(d time.Duration, rate float64) time.Duration {
	if rate == 1 {
		return d // exact for any d, which float64 is only up to 104 days
	}
	return saturate(float64(d) * rate)
}

// unscale returns d/rate, rounded up. Neither may be negative.
func unscale(d time.Duration, rate float64) time.Duration {
	if rate == 1 {
		return d
	}
	return saturate(math.Ceil(float64(d) / rate))
}

func saturate(f float64) time.Duration {
	if f >= math.MaxInt64 { // as a float64, this is 1<<63
		return latest
	}
	return time.Duration(f)
}
