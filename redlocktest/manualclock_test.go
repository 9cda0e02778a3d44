// A clock that the test sets.

package redlocktest_test

import (
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A manualClock stands at the Unix millisecond that it was set to. Its timers
// never fire.
type manualClock struct {
	now atomic.Int64
}

func (c *manualClock) set(ms int64) { c.now.Store(ms) }

func (c *manualClock) Elapsed() time.Duration { return time.Duration(c.now.Load()) * time.Millisecond }

func (c *manualClock) Now() time.Time { return time.UnixMilli(c.now.Load()) }

func (c *manualClock) AfterFunc(time.Duration, func()) clock.Timer { return stopped{} }

type stopped struct{}

func (stopped) Stop() bool               { return false }
func (stopped) Reset(time.Duration) bool { return false }
