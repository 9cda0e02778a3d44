// The claims of the example: exactly once with the lock, even when a holder is
// killed, and not without it.

package main

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

func TestDefaultRun(t *testing.T) {
	t.Parallel()
	r := runProgram(t, nil)
	r.wantExact(t, 240)
	r.wantTakeover(t)
	shares := r.find(t, `billed by worker  1: (\d+).*, 2: (\d+).*, 3: (\d+).*, 4: (\d+)`)
	sum := 0
	for _, share := range shares {
		sum += int(number(share))
	}
	if sum != 240 {
		t.Errorf("the workers' shares %v add up to %d", shares, sum)
	}
}

// wantTakeover checks that a worker was killed with a lock in hand, that the
// lock kept the others out for as long as its lease lasted, and that one of
// them then got it.
func (r result) wantTakeover(t *testing.T) {
	t.Helper()
	death := r.find(t, `worker (\d+) \(pid \d+\) killed while holding lock (\S+); its lease ends in ([\d.]+) s`)
	heir := r.find(t, `killed while holding (?s:.*)worker (\d+) took over (\S+) after ([\d.]+) s\n`)
	if death[1] != heir[1] || death[0] == heir[0] {
		t.Errorf("worker %s had %q, worker %s took over %q", death[0], death[1], heir[0], heir[1])
	}
	// Both times are rounded to 0.1 s, and the nodes may run fast by 1 %.
	if left, after := number(death[2]), number(heir[2]); after < left-0.2 {
		t.Errorf("taken over after %v s, with %v s left of the lease", after, left)
	}
	if got := r.row(t, "killed"); !strings.HasPrefix(got, "worker "+death[0]+", billing invoice ") ||
		!strings.Contains(got, "; "+death[1]+" taken over after ") {
		t.Errorf("killed: %q", got)
	}
}

// TestOneCustomer lets nobody do anything but wait for the killed worker's
// lock.
func TestOneCustomer(t *testing.T) {
	t.Parallel()
	r := runProgram(t, nil, "-workers", "3", "-customers", "1", "-invoices", "3", "-ttl", "1s")
	r.wantExact(t, 3)
	r.wantTakeover(t)
	waits := r.find(t, `lock waits        p50 ([\d.]+) ms, max ([\d.]+) ms`)
	if number(waits[1]) < 500 { // who asks late waits less
		t.Errorf("longest wait %s ms, although a lock was left behind for 1 s", waits[1])
	}
}

// TestNoLock shows that the ledger does not hide what the lock prevents, so
// that the other tests prove something.
func TestNoLock(t *testing.T) {
	t.Parallel()
	r := runProgram(t, nil, "-no-lock")
	twice, err := strconv.Atoi(r.row(t, "billed twice"))
	if err != nil || twice == 0 {
		t.Errorf("billed twice: %d, %v", twice, err)
	}
	if got := r.row(t, "amounts"); !strings.HasPrefix(got, "NOT reconciled: ") {
		t.Errorf("amounts: %q", got)
	}
	if r.code != exitFailed || !strings.HasSuffix(r.stdout, "\nNOT every invoice was billed exactly once\n") {
		t.Errorf("exit code %d", r.code)
	}
}

func TestNoKill(t *testing.T) {
	t.Parallel()
	r := runProgram(t, nil, "-no-kill", "-workers", "1", "-customers", "3", "-invoices", "12", "-v")
	r.wantExact(t, 12)
	if strings.Contains(r.stdout, "killed") {
		t.Error("somebody was killed")
	}
	if n := strings.Count(r.stdout, "worker 1 billed invoice "); n != 12 {
		t.Errorf("-v shows %d charges", n)
	}
}

// TestRealServers gives the nodes by the environment, one of them down.
func TestRealServers(t *testing.T) {
	t.Parallel()
	servers := redisproc.StartN(t, 5)
	addrs := make([]string, len(servers))
	for i, server := range servers {
		addrs[i] = server.Addr()
	}
	addrs[0] = "redis://" + addrs[0] + "/0"
	_ = servers[4].Kill()
	began := time.Now()
	r := runProgram(t, []string{nodesEnv + "=" + strings.Join(addrs, ",")}, "-customers", "8", "-invoices", "80", "-ttl", "1s")
	r.wantExact(t, 80)
	r.wantTakeover(t)
	if !strings.Contains(r.stdout, "node 5 ("+addrs[4]+") does not answer") {
		t.Error("nothing is said about the node that is down")
	}

	// What is left on the servers is the counters, whose life is long, and at
	// most for one TTL the key of the killed worker.
	time.Sleep(time.Until(began.Add(r.took + 1100*time.Millisecond)))
	for _, server := range servers[:4] {
		for _, key := range server.Keys() {
			if strings.HasPrefix(key, "lock:") {
				t.Errorf("%s: key %q is left", server.Addr(), key)
			}
		}
	}
}

// TestHelp wants the usage on standard output, and nothing run.
func TestHelp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-h").Output()
	if err != nil || !strings.Contains(string(out), "-no-lock") {
		t.Errorf("-h: %v\n%s", err, out)
	}
}
