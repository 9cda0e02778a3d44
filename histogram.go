// Quantiles of durations in bounded memory.

package redlock

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram has eight buckets for each power of two of nanoseconds, so a bucket's
// middle is off by a sixteenth of any duration in it at most. The last one has all
// from 2^48 ns on, 78 hours.
type histogram struct {
	max     atomic.Int64
	sum     atomic.Int64 // microseconds: nanoseconds of a thousand leases overflow within months
	buckets [lastBucket + 1]atomic.Uint64
}

const (
	perOctave  = 8
	lastOctave = 44
	lastBucket = (lastOctave+1)*perOctave + perOctave // of those that are too long

	// The bounds of Latency.Buckets.
	firstBound, lastBound = 16, 36
)

// bucketOf returns the bucket of d: nanoseconds up to 7, and from there the power of
// two and the three bits that follow the first.
func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < perOctave {
		return int(v)
	}
	octave := bits.Len64(v) - bits.Len64(perOctave)
	return min(octave*perOctave+int(v>>octave), lastBucket)
}

// bottom returns the least duration in a bucket.
func bottom(bucket int) time.Duration {
	if bucket < perOctave {
		return time.Duration(bucket)
	}
	octave := bucket/perOctave - 1
	return time.Duration(perOctave+bucket%perOctave) << octave
}

func (h *histogram) record(d time.Duration) {
	d = max(d, 0)
	raiseTo(&h.max, int64(d)) // first: who reads it last has seen no longer one
	h.sum.Add(int64((d + time.Microsecond/2) / time.Microsecond))
	h.buckets[bucketOf(d)].Add(1)
}

// latency sums up what was recorded.
func (h *histogram) latency() Latency {
	var counts [lastBucket + 1]int64
	l := Latency{Buckets: make([]Bucket, 0, lastBound-firstBound+1)}
	bound := time.Duration(1) << firstBound
	for i := range counts {
		for len(l.Buckets) < cap(l.Buckets) && bottom(i) >= bound {
			l.Buckets, bound = append(l.Buckets, Bucket{Bound: bound, Count: l.Count}), 2*bound
		}
		counts[i] = int64(h.buckets[i].Load())
		l.Count += counts[i]
	}
	if l.Count == 0 {
		return l
	}
	l.Max = time.Duration(h.max.Load())
	l.Sum = time.Duration(h.sum.Load()) * time.Microsecond
	l.Mean = l.Sum / time.Duration(l.Count)
	l.P50 = quantile(&counts, l.Count, 0.50, l.Max)
	l.P90 = quantile(&counts, l.Count, 0.90, l.Max)
	l.P99 = quantile(&counts, l.Count, 0.99, l.Max)
	return l
}

// quantile returns about the least duration that a share q of all do not exceed.
func quantile(counts *[lastBucket + 1]int64, n int64, q float64, most time.Duration) time.Duration {
	rank := max(int64(math.Ceil(q*float64(n))), 1)
	for i := range counts[:lastBucket] {
		if rank -= counts[i]; rank <= 0 {
			return min((bottom(i)+bottom(i+1)-1)/2, most)
		}
	}
	return most
}
