// Builds the program once, runs it as a user does, and reads what it prints.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// program is the path of the built program.
var program string

func TestMain(m *testing.M) {
	os.Exit(buildAndTest(m))
}

func buildAndTest(m *testing.M) int {
	dir, err := os.MkdirTemp("", "billing-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "billing.exe")
	args := []string{"build", "-o", program}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// A result is what a finished run left to see.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// command returns the program, not yet started, with a temporary folder of its
// own and without an environment that would change what it does.
func command(ctx context.Context, t *testing.T, env []string, args ...string) (cmd *exec.Cmd, tmp string) {
	t.Helper()
	tmp = t.TempDir()
	cmd = exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), nodesEnv+"=", workerEnv+"=", "TMPDIR="+tmp, "TMP="+tmp)
	cmd.Env = append(cmd.Env, env...)
	cmd.WaitDelay = 10 * time.Second
	return cmd, tmp
}

// runProgram runs the program to its end, which must come in time, and checks
// that no file is left.
func runProgram(t *testing.T, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd, tmp := command(ctx, t, env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	r := result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("billing %s: exit code %d after %v\n%s%s", strings.Join(args, " "), r.code, r.took, r.stdout, r.stderr)
		}
	})
	if ctx.Err() != nil {
		t.Fatalf("not finished after %v", r.took)
	}
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	wantEmpty(t, tmp)
	return r
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// row returns a line of the summary, without its label.
func (r result) row(t *testing.T, label string) string {
	t.Helper()
	_, summary, _ := strings.Cut(r.stdout, "\n\n")
	for line := range strings.Lines(summary) {
		if rest, ok := strings.CutPrefix(line, label+"  "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Errorf("no %q in the summary", label)
	return ""
}

// find returns the groups of the first match of a pattern, empty ones if there
// is none.
func (r result) find(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	if m := re.FindStringSubmatch(r.stdout); m != nil {
		return m[1:]
	}
	t.Errorf("nothing matches %s", pattern)
	return make([]string, re.NumSubexp())
}

// number is for what a pattern has matched as a number.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// wantExact checks that a run billed n invoices exactly once, and says so.
func (r result) wantExact(t *testing.T, n int) {
	t.Helper()
	want := func(label, value string) {
		t.Helper()
		if got := r.row(t, label); got != value {
			t.Errorf("%s: %q, want %q", label, got, value)
		}
	}
	want("billed once", fmt.Sprintf("%d of %d", n, n))
	want("billed twice", "0")
	want("left unbilled", "0")
	if got := r.row(t, "amounts"); !strings.HasPrefix(got, "reconciled: ") {
		t.Errorf("amounts: %q", got)
	}
	if !strings.HasSuffix(r.stdout, "\nevery invoice was billed exactly once\n") {
		t.Errorf("no verdict at the end")
	}
	if r.code != exitOK || r.stderr != "" {
		t.Errorf("exit code %d, standard error %q", r.code, r.stderr)
	}
}
