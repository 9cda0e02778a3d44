//go:build unix

// What a held lease costs.

package redlock_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkHeld holds leases on five real servers for half a TTL and more after
// they were taken, and reports what that costs.
func BenchmarkHeld(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("size=5/leases=%d", n), func(b *testing.B) {
			if testing.Short() && n > 100 {
				b.Skip("NOT RUN: -short")
			}
			// 100,000 leases take a while to get, and must not end meanwhile.
			const ttl = 30 * time.Second
			f := startFleet(b, 5)
			before := heapInUse()
			h := holdMany(b, f, n, ttl)
			perLease := (float64(heapInUse()) - float64(before)) / float64(n)
			h.mu.Lock()
			h.behind = h.behind[:0]
			h.mu.Unlock()
			for b.Loop() {
				used := cpu()
				most, typical := measure(ttl / 3)
				used = cpu() - used
				h.mu.Lock()
				behind := slices.Clone(h.behind)
				h.behind = h.behind[:0]
				h.mu.Unlock()
				if len(behind) == 0 {
					b.Fatalf("nothing was renewed, and %d leases were lost", h.lost.Load())
				}
				slices.Sort(behind)
				b.ReportMetric(float64(behind[len(behind)*99/100].Microseconds())/1000, "late-p99-ms")
				b.ReportMetric(float64(behind[len(behind)-1].Microseconds())/1000, "late-max-ms")
				b.ReportMetric(float64(used.Nanoseconds())/1000/float64(len(behind)), "cpu-µs/renewal")
				b.ReportMetric(perLease, "B/lease")
				b.ReportMetric(float64(typical), "goroutines-p50")
				b.ReportMetric(float64(most), "goroutines-max")
				b.ReportMetric(float64(h.lost.Load()), "lost")
			}
			runtime.KeepAlive(h)
		})
	}
}
