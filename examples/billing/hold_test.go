// Leases that renew themselves: held during work longer than the TTL, and lost
// by a worker that is stopped for longer.

package main

import (
	"strings"
	"testing"
)

// TestLongWork wants every lock held throughout charges of 1.5 to 4.5 times the
// TTL: nobody gives one up, and nobody else bills the same invoice meanwhile.
func TestLongWork(t *testing.T) {
	t.Parallel()
	r := runProgram(t, nil, "-no-kill", "-no-stop", "-ttl", "1s", "-work", "3s",
		"-workers", "3", "-customers", "2", "-invoices", "4", "-v")
	r.wantExact(t, 4)
	if strings.Contains(r.stdout, "gave up") || strings.Contains(r.stdout, "stopped") {
		t.Error("not all leases were held")
	}
	hold := r.find(t, `longest hold      ([\d.]+) s, ([\d.]+) times the TTL\n`)
	if number(hold[0]) < 1.5 || number(hold[1]) < 1.5 {
		t.Errorf("longest hold %s s, %s times the TTL", hold[0], hold[1])
	}
}

// TestStop runs with and without the kill. The lease of the stopped worker ends
// for everybody: another worker has the customer before it is continued.
func TestStop(t *testing.T) {
	t.Parallel()
	if !canSuspend {
		t.Skip("no SIGSTOP")
	}
	for name, args := range map[string][]string{
		"and kill":     {"-ttl", "1s"},
		"alone":        {"-ttl", "1s", "-no-kill", "-workers", "2", "-invoices", "40"},
		"one customer": {"-ttl", "500ms", "-workers", "3", "-customers", "1", "-invoices", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runProgram(t, nil, append(args, "-v")...)
			r.wantExact(t, strings.Count(r.stdout, " billed invoice "))
			r.wantStop(t)
		})
	}
	r := runProgram(t, nil, "-no-stop", "-no-kill", "-invoices", "40")
	r.wantExact(t, 40)
	if strings.Contains(r.stdout, "stopped") {
		t.Error("-no-stop: somebody was stopped")
	}
}

func (r result) wantStop(t *testing.T) {
	t.Helper()
	stop := r.find(t, `worker (\d+) \(pid \d+\) stopped while holding lock (\S+); its lease ends in ([\d.]+) s\n`)
	heir := r.find(t, `stopped while (?s:.*)worker (\d+) took over (\S+) from the stopped worker (\d+) after ([\d.]+) s\n`)
	end := r.find(t, `took over (?s:.*)worker (\d+) continued after ([\d.]+) s: its lease is lost, nothing was committed\n`)
	if heir[2] != stop[0] || end[0] != stop[0] || heir[0] == stop[0] || heir[1] != stop[1] {
		t.Errorf("stopped: %v, taken over: %v, continued: %v", stop, heir, end)
	}
	if left, after := number(stop[2]), number(heir[3]); after < left-0.2 || number(end[1]) < after-0.1 {
		t.Errorf("%v s were left of the lease, taken over after %v s, continued after %s s", left, after, end[1])
	}
	row := r.find(t, `stopped           worker (\d+), billing invoice (\d+); (\S+) taken over after .*, noticed in ([\d.]+) ms, committed nothing\n`)
	if row[0] != stop[0] || row[2] != stop[1] {
		t.Errorf("summary: %v, stopped: %v", row, stop)
	}
	// Usually below one; a busy machine must not fail this.
	if ms := number(row[3]); ms > 1000 {
		t.Errorf("noticed after %v ms", ms)
	}
	// What was given up is billed once, after that, and not under the lost lease.
	before, _, _ := strings.Cut(r.stdout, "stopped while holding")
	if strings.Contains(before, " billed invoice "+row[1]+" ") {
		t.Errorf("invoice %s was billed before", row[1])
	}
}
