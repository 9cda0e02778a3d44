// What needs the inside of the package, or a stand-in for the machine around it.

package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestPortTaken(t *testing.T) {
	first := Start(t)
	tried := 0
	ports := func() int {
		if tried++; tried == 1 {
			return first.port // where another server answers PONG
		}
		return freePort()
	}
	second, err := launch(t.Context(), config{ports: ports, args: []string{"--save", ""}})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if tried != 2 || second.port == first.port {
		t.Errorf("launched on port %d after %d tries; port %d was taken", second.port, tried, first.port)
	}

	if _, err := launch(t.Context(), config{ports: func() int { return first.port }}); !errors.Is(err, errPortTaken) {
		t.Errorf("with no port to be had: %v", err)
	}
}

func TestRestartWaitsForPort(t *testing.T) {
	s := Start(t)
	s.Kill()
	thief, err := launch(t.Context(), config{ports: func() int { return s.port }})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { thief.Close() })
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	info, err := s.Do("INFO", "server")
	if err != nil || !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.PID())) {
		t.Errorf("after Restart another server answers: %v", err)
	}
}

func TestLaunchNotReady(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	bin := t.TempDir()
	pidFile := filepath.Join(bin, "pid")
	script := "#!/bin/sh\necho $$ >" + pidFile + "\necho log of $MARK\nexec /bin/sleep 60\n"
	if err := os.WriteFile(filepath.Join(bin, "redis-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := Launch(ctx, Env("MARK=hello"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "log of hello") {
		t.Errorf("Launch of a server that is never ready: %v", err)
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
			t.Error("the process was left running")
		}
	}
}

// outcome catches how a test ends, and what fails it.
type outcome struct {
	testing.TB
	skipped, fatal string
	errs           []string
}

func (o *outcome) Skipf(format string, args ...any) {
	o.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (o *outcome) Fatal(args ...any) {
	o.fatal = fmt.Sprint(args...)
	runtime.Goexit()
}

func (o *outcome) Error(args ...any) { o.errs = append(o.errs, fmt.Sprint(args...)) }

func TestWithoutRedis(t *testing.T) {
	start := func(t *testing.T, require string) *outcome {
		t.Helper()
		t.Setenv("PATH", t.TempDir())
		t.Setenv("REDLOCK_REQUIRE", require)
		o, done := &outcome{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			StartN(o, 3)
		}()
		<-done
		return o
	}
	for _, require := range []string{"", "docker", "redis-cli"} {
		t.Run("require="+require, func(t *testing.T) {
			if o := start(t, require); o.fatal != "" || !strings.Contains(o.skipped, "NOT TESTED") {
				t.Errorf("skipped %q, failed %q; want a loud skip", o.skipped, o.fatal)
			}
		})
	}
	for _, require := range []string{"redis", "docker, redis"} {
		t.Run("require="+require, func(t *testing.T) {
			if o := start(t, require); o.skipped != "" || !strings.Contains(o.fatal, exec.ErrNotFound.Error()) {
				t.Errorf("skipped %q, failed %q; want a failure", o.skipped, o.fatal)
			}
		})
	}
}

func TestFailureFailsTest(t *testing.T) {
	o := &outcome{TB: t}
	s := Start(o)
	if len(o.errs) > 0 {
		t.Fatal(o.errs)
	}
	s.Kill()
	if err := s.Pause(); err == nil || len(o.errs) != 1 {
		t.Errorf("Pause of a killed server: %v, test failed with %q", err, o.errs)
	}
	if s.Resume(); len(o.errs) != 2 {
		t.Errorf("Resume of a killed server: test failed with %q", o.errs)
	}
	if s.Keys(); len(o.errs) != 3 {
		t.Errorf("Keys of a killed server: test failed with %q", o.errs)
	}
}
