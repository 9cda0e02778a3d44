// What the callers' process consists of.

package main

import (
	"runtime"
	"time"

	"github.com/quorumlock/redlock/bench/internal/result"
)

// A size is what there is when nothing else goes on.
type size struct{ goroutines, memory int64 }

func measureSize() size {
	runtime.GC() // what is in a sync.Pool
	runtime.GC() // survives one
	return size{int64(runtime.NumGoroutine()), int64(memory().HeapAlloc)}
}

// settle waits until what was measured before has ended: connections that are closed
// have goroutines and buffers for a moment.
func settle() {
	const look, most = 20 * time.Millisecond, 25
	before := runtime.NumGoroutine()
	for range most {
		time.Sleep(look)
		now := runtime.NumGoroutine()
		if now >= before {
			return
		}
		before = now
	}
}

// watchGoroutines counts goroutines until its result is called, which returns how
// many there were at most.
func watchGoroutines() (end func() int64) {
	const every = 5 * time.Millisecond
	stop, ended := make(chan struct{}), make(chan int64)
	go func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		most := 0
		for {
			most = max(most, runtime.NumGoroutine())
			select {
			case <-ticks.C:
			case <-stop:
				ended <- int64(most)
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-ended
	}
}

// workers are the goroutines of a pass that belong to the measurement: the callers,
// who waits for them, and who counts.
func (s *slot) workers() int64 {
	const others = 2
	if s.situation.Kind == result.Held {
		return others
	}
	return int64(s.situation.Callers) + others
}
