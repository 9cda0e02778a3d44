// True time: that of the bubble, which nobody in it can see but the simulation.

package sim

import (
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A truth is the clock that all others are views of. It is not clock.System, which
// makes a system call to see whether the machine was suspended: that would be most of
// a run.
type truth struct{ origin time.Time }

func newTruth() truth { return truth{time.Now()} } //nolint:forbidigo // of the bubble

func (t truth) Elapsed() time.Duration { return time.Since(t.origin) } //nolint:forbidigo // of the bubble

func (truth) Now() time.Time { return time.Now() } //nolint:forbidigo // of the bubble

func (truth) AfterFunc(d time.Duration, f func()) clock.Timer { return time.AfterFunc(d, f) }

// pass waits until d of true time has passed.
func (t truth) pass(d time.Duration) {
	over := make(chan struct{})
	t.AfterFunc(d, func() { close(over) })
	<-over
}
