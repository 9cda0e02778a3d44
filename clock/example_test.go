package clock_test

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// A laptop whose lid was closed for an hour.
func ExampleSkewed_Suspend() {
	c := clock.NewSkewed(clock.System, clock.Skew{})
	late := c.AfterFunc(time.Minute, func() {})

	before := c.Elapsed()
	c.Suspend(time.Hour)
	fmt.Println("passed:", (c.Elapsed() - before).Round(time.Minute))
	fmt.Println("timer still pending:", late.Stop())
	// Output:
	// passed: 1h0m0s
	// timer still pending: true
}
