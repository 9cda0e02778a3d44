// A run that is interrupted keeps what it has measured.

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	locks := 0
	second := fake{lock: func(ctx context.Context) error {
		if locks++; locks == 3 { // past the warm-up, or in it
			cancel()
			return ctx.Err()
		}
		time.Sleep(time.Millisecond)
		return nil
	}}
	r, _, _ := with(ctx, t, []peer.Peer{fake{}.peer("first"), second.peer("second")}, "-rounds", "1000")
	if !r.Interrupted || len(r.Failures) > 0 {
		t.Errorf("interrupted %v, failures %+v", r.Interrupted, r.Failures)
	}
	if c := r.Find("first", result.Situation{Kind: result.Lock, Callers: 1}); c == nil || c.Cycles() == 0 {
		t.Errorf("what was measured is lost: %+v", c)
	}
}

// TestSignal interrupts the program as a user does.
func TestSignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent an interrupt")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args, dir := short(t, "-rounds", "1000", "-peers", "redlock,redsync", "-measure", "lock", "-delay-sweep", "")
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), programEnv+"=1")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The result is there after the first round.
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(dir, jsonFile))
		if bytes.Contains(text, []byte(`"rounds": [`)) {
			break
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			t.Fatal("no round within a minute")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("%v\n%s", err, log.String())
	}
	r := read(t, dir)
	if !r.Interrupted || len(r.Cells) == 0 || len(r.Failures) > 0 {
		t.Errorf("interrupted %v, %d cells, failures %+v", r.Interrupted, len(r.Cells), r.Failures)
	}
	if !strings.Contains(out.String(), "INTERRUPTED") || !strings.Contains(log.String(), "bench: interrupted") {
		t.Errorf("standard output:\n%s\nstandard error:\n%s", out.String(), log.String())
	}
	if _, err := os.Stat(filepath.Join(dir, htmlFile)); err != nil {
		t.Error(err)
	}
}
