// Chance that is the same each time: a number for each thing that can happen.

package sim

import (
	"math"
	"time"
)

// A dice is a seed. What it shows depends on nothing but the seed and the labels of
// what is drawn, and not on what was drawn before: so a run goes on as it did when a
// fault is taken out of it, and when goroutines of one instant change places.
type dice uint64

// draw returns a number in [0, 1).
func (d dice) draw(labels ...uint64) float64 {
	x := uint64(d)
	for _, l := range labels {
		x = mix(x + 0x9e3779b97f4a7c15 + l)
	}
	return float64(mix(x)>>11) / (1 << 53)
}

// below returns a number from 0 to n-1.
func (d dice) below(n int, labels ...uint64) int { return int(d.draw(labels...) * float64(n)) }

// between returns a time from low up to high.
func (d dice) between(low, high time.Duration, labels ...uint64) time.Duration {
	return low + time.Duration(d.draw(labels...)*float64(high-low))
}

// skewed returns a time around mean that is seldom long: most messages are quick.
func (d dice) skewed(mean time.Duration, labels ...uint64) time.Duration {
	return time.Duration(-math.Log(1-d.draw(labels...))*float64(mean)) + 1
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func label(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
