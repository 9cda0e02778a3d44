// Nothing is left when the program is stopped, however it is.

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopMidway runs the program, sends it a signal when it has billed 20 invoices,
// and returns its exit code. It fails if a worker is left 15 s later. Files may
// be left only where the signal cannot be handled.
func stopMidway(t *testing.T, sig syscall.Signal, group bool) int {
	t.Helper()
	code, _ := stopWhen(t, sig, group, 20, " billed invoice ")
	return code
}

// stopWhen does so when it has seen n lines with a certain text, and returns the
// output as well.
func stopWhen(t *testing.T, sig syscall.Signal, group bool, n int, mark string, args ...string) (code int, stdout string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, tmp := command(ctx, t, nil, append([]string{"-v", "-invoices", "5000", "-ttl", "1s"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	target := cmd.Process.Pid
	if group {
		target = -target // as the terminal does
	}

	var workers []int
	var text strings.Builder
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		text.WriteString(line + "\n")
		var worker, pid int
		if _, rest, ok := strings.Cut(line, "worker "); ok {
			if n, _ := fmt.Sscanf(rest, "%d is process %d", &worker, &pid); n == 2 {
				workers = append(workers, pid)
			}
		}
		if strings.Contains(line, mark) {
			if seen++; seen == n {
				if err := syscall.Kill(target, sig); err != nil {
					t.Error(err)
				}
			}
		}
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("did not end\n%s", text.String())
	}
	if len(workers) < 4 || seen < n {
		t.Fatalf("workers %v, %d times %q\n%s%s", workers, seen, mark, text.String(), stderr.String())
	}
	wait := time.Now().Add(15 * time.Second)
	for _, pid := range workers {
		for alive(pid) {
			if time.Now().After(wait) {
				t.Fatalf("worker process %d is left", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if sig != syscall.SIGKILL {
		wantEmpty(t, tmp)
		if !strings.Contains(text.String(), "stopped after ") || stderr.String() != "billing: interrupted\n" {
			t.Errorf("standard error %q after\n%s", stderr.String(), text.String())
		}
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// alive tells whether a process runs. One that has ended and that nobody has
// asked about yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && strings.Contains(string(stat), "billing.exe")
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	if code := stopMidway(t, syscall.SIGINT, true); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	if code := stopMidway(t, syscall.SIGTERM, false); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

// TestTerminateChaos has workers stopped and others about to be killed, all of
// them waiting for orders that do not come any more.
func TestTerminateChaos(t *testing.T) {
	t.Parallel()
	args := []string{"-chaos", "-seed", "7", "-invoices", "60", "-ttl", "1m"} // nobody is continued before
	code, stdout := stopWhen(t, syscall.SIGTERM, false, 1, " stopped between ", args...)
	if code != exitInterrupted || strings.Contains(stdout, " failed: ") {
		t.Errorf("exit code %d after\n%s", code, stdout)
	}
}

// TestParentKilled leaves it to the workers to notice.
func TestParentKilled(t *testing.T) {
	t.Parallel()
	stopMidway(t, syscall.SIGKILL, false)
}
