// Wall clocks that a test sets: off from the start, or stepped while servers run.

package redisproc

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A WallClock is what servers take for the wall clock. It is the machine's until
// Set is called.
type WallClock struct {
	shim string
	file *os.File // 8 bytes, which the servers have mapped into their memory
}

//go:embed shim/wallclock.c
var wallClockC []byte

// WallClocks makes n clocks, which end with the test. They need gcc. Where that is
// missing the test is skipped, or fails if it may not go without servers.
func WallClocks(t testing.TB, n int) []*WallClock {
	t.Helper()
	dir := t.TempDir()
	shim, err := buildShim(t, dir)
	switch {
	case errors.Is(err, exec.ErrNotFound) && !required():
		t.Skipf("NOT TESTED: clocks that are off need gcc (REDLOCK_REQUIRE=redis makes this a failure): %v", err)
	case err != nil:
		t.Fatal(err)
	}
	clocks := make([]*WallClock, n)
	for i := range clocks {
		file, err := os.Create(filepath.Join(dir, fmt.Sprint("clock", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		clocks[i] = &WallClock{shim, file}
		if err := clocks[i].Set(0); err != nil {
			t.Fatal(err)
		}
	}
	return clocks
}

// buildShim builds the library that is put between a server and the C library.
func buildShim(t testing.TB, dir string) (string, error) {
	t.Helper()
	source, shim := filepath.Join(dir, "wallclock.c"), filepath.Join(dir, "wallclock.so")
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(source, wallClockC, 0o644); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(t.Context(), gcc, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", shim, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return shim, nil
}

// Serve makes a server use c.
func (c *WallClock) Serve() Option {
	return Env("LD_PRELOAD="+c.shim, "REDISPROC_CLOCK="+c.file.Name())
}

// Set makes c differ from the machine's clock by off, from now on. Commands that
// are sent after it has returned see that.
func (c *WallClock) Set(off time.Duration) error {
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(off.Microseconds())), 0)
	return err
}
