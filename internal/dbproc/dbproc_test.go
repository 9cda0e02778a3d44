// A server that is missing is missed loudly, and its programs are found together.

package dbproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A recorder is a test that tells how it was ended.
type recorder struct {
	testing.TB
	verdict string
}

func (r *recorder) end(verdict, format string, args []any) {
	r.verdict = verdict + ": " + fmt.Sprintf(format, args...)
	panic(r) // the real ones do not return either
}

func (r *recorder) Fatalf(format string, args ...any) { r.end("failed", format, args) }
func (r *recorder) Skipf(format string, args ...any)  { r.end("skipped", format, args) }

func TestMissingServer(t *testing.T) {
	for required, want := range map[string]string{
		"":                      "skipped: NOT TESTED: oracle is not installed (REDLOCK_REQUIRE=oracle",
		"redis,postgres":        "skipped: NOT TESTED",
		"oracle":                "failed: oracle is required",
		"redis, oracle ,docker": "failed: oracle is required",
	} {
		t.Setenv("REDLOCK_REQUIRE", required)
		r := &recorder{TB: t}
		func() {
			defer func() {
				if p := recover(); p != r {
					panic(p)
				}
			}()
			start(r, kind{name: "oracle", find: func() (map[string]string, error) { return nil, exec.ErrNotFound }})
		}()
		if !strings.HasPrefix(r.verdict, want) {
			t.Errorf("REDLOCK_REQUIRE=%q: %q, want %q", required, r.verdict, want)
		}
	}
}

func TestFind(t *testing.T) {
	path, old, recent := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	program := func(folder, name string) {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what, folder string) {
		t.Helper()
		bin, err := find([]string{old, recent}, "a", "b")
		if folder == "" {
			if !errors.Is(err, exec.ErrNotFound) {
				t.Errorf("%s: %v, %v, want an error", what, bin, err)
			}
			return
		}
		if err != nil || bin["a"] != filepath.Join(folder, "a") || bin["b"] != filepath.Join(folder, "b") {
			t.Errorf("%s: %v, %v, want those of %s", what, bin, err, folder)
		}
	}
	program(path, "a")
	program(recent, "a")
	want("none is complete", "")
	program(old, "a")
	program(old, "b")
	want("one is complete", old)
	program(recent, "b")
	want("two are complete", recent)
	program(path, "b")
	want("on the PATH", path)
}
