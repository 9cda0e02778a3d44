// Processes of this test binary that run one of its tests.

package integration_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// reexec prepares a process that runs one test of this binary. It is killed when
// ctx ends, and on the death of the thread that starts it: whoever does that locks
// a goroutine to its thread until the process has ended.
func reexec(ctx context.Context, test string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// children returns the processes that reexec has started and that are still there.
func children(t testing.TB) (pids []int) {
	t.Helper()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // the state and the parent come next
		if f := strings.Fields(rest); len(f) < 2 || f[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		// What has ended and was not waited for has no file any more.
		if link, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe")); err != nil || link == exe {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}
