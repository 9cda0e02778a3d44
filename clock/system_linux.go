// System on Linux: suspends show as CLOCK_BOOTTIME gaining on CLOCK_MONOTONIC.

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

func newSystem() *system {
	return systemWith(unix.CLOCK_BOOTTIME)
}

// systemWith returns a system whose gap is that of the kernel clock boot. Where
// the kernel refuses to read it, the wall clock stands in.
func systemWith(boot int32) *system {
	if _, err := reading(boot); err != nil {
		origin := time.Now()
		return &system{origin, wallGap(origin)}
	}

	// Both clocks are read relative to a reading of the monotonic one just
	// before Go's, so that Go's can be used in place of a system call. What
	// passes between the two adds to the noise, so try for little.
	var start time.Duration
	var origin time.Time
	for range attempts {
		start, _ = reading(unix.CLOCK_MONOTONIC)
		origin = time.Now()
		if end, _ := reading(unix.CLOCK_MONOTONIC); end-start < bootNoise/10 {
			break
		}
	}
	// A clock that could be read once always can be, so errors are not looked at.
	since := func(id int32) func() time.Duration {
		return func() time.Duration {
			t, _ := reading(id)
			return t - start
		}
	}
	return &system{origin, newGap(since(unix.CLOCK_MONOTONIC), since(boot), bootNoise)}
}

// bootNoise is far more than two readings in a row take, and far less than the
// shortest suspend. The kernel keeps the two clocks exactly in step otherwise.
const bootNoise = time.Millisecond

// reading returns the time on one of the kernel's clocks.
func reading(id int32) (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(id, &ts)
	return time.Duration(ts.Nano()), err
}
