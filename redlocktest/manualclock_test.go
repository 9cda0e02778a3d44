// A clock that the test sets.

package redlocktest_test

import (
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A manualClock stands at the Unix time that it was set to. Its timers
// never fire.
type manualClock struct {
	now  atomic.Int64
	rest atomic.Int64 // microseconds after it
}

func (c *manualClock) set(ms int64) { c.now.Store(ms); c.rest.Store(0) }

func (c *manualClock) setMicro(us int64) { c.now.Store(us / 1000); c.rest.Store(us % 1000) }

func (c *manualClock) Elapsed() time.Duration { return time.Duration(c.now.Load()) * time.Millisecond }

func (c *manualClock) Now() time.Time { return time.UnixMicro(c.now.Load()*1000 + c.rest.Load()) }

func (c *manualClock) AfterFunc(time.Duration, func()) clock.Timer { return stopped{} }

type stopped struct{}

func (stopped) Stop() bool               { return false }
func (stopped) Reset(time.Duration) bool { return false }
