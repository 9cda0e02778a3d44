// Benchmarks of lock and unlock.

package bench_test

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// BenchmarkLockUnlock is one caller, nobody else being there.
func BenchmarkLockUnlock(b *testing.B) {
	for _, library := range compared {
		for _, n := range []int{1, 3, 5} {
			b.Run(fmt.Sprintf("lib=%s/n=%d", library, n), func(b *testing.B) {
				lock := libraries[library](b, addrs(b, n))(key(library, 0))
				if err := lock(b.Context()); err != nil { // connects
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := lock(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLockUnlockParallel is many callers at once, each with a resource of
// its own. ns/op is the time between two cycles of any of them; cycles/s says it
// the other way round.
func BenchmarkLockUnlockParallel(b *testing.B) {
	for _, library := range compared {
		for _, n := range []int{1, 3, 5} {
			for _, callers := range []int{1, 16, 128} {
				b.Run(fmt.Sprintf("lib=%s/n=%d/callers=%d", library, n, callers), func(b *testing.B) {
					parallel(b, library, n, callers)
				})
			}
		}
	}
}

func parallel(b *testing.B, library string, n, callers int) {
	b.Helper()
	newLocker := libraries[library](b, addrs(b, n))
	lockers := make(chan locker, callers)
	for i := range callers {
		lock := newLocker(key(library, int64(i)))
		if err := lock(b.Context()); err != nil {
			b.Fatal(err)
		}
		lockers <- lock
	}
	var failed atomic.Int64
	work := make(chan struct{})
	done := make(chan struct{}, callers)
	for range callers {
		lock := <-lockers
		go func() {
			for range work {
				if err := lock(b.Context()); err != nil {
					failed.Add(1)
				}
			}
			done <- struct{}{}
		}()
	}
	b.ReportAllocs()
	before := used(b)
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	for range callers {
		<-done
	}
	before.report(b)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	if n := failed.Load(); n > 0 {
		b.Errorf("%d of %d cycles failed", n, b.N)
	}
}
