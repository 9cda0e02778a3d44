package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/redlocktest"
)

// TestCronLate: a host that is late by as much as is allowed does not run the job again.
func TestCronLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(2 * keep) // until the locks are gone
		all := hosts(t, redlocktest.New(5), 2)
		n := period(t, all, keep-patience-100*time.Millisecond, func(s schedule) (bool, error) { return s.run(t.Context(), quick) })
		if n != 1 {
			t.Errorf("%d runs of hosts whose clocks differ by %v and more less than %v", n, patience, keep)
		}
	})
}
