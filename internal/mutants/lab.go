// One copy of the module, where mutants are made and tested one after the other.

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
	"strings"
	"time"
)

// How long a killer may run before it hangs. They take some seconds, but not on a machine
// that has other things to do. One that is to hang need not be waited for that long.
const (
	patience = 2 * time.Minute
	hanging  = 20 * time.Second
)

// A lab is a copy of the module.
type lab struct {
	root     string
	binaries string            // the folder that test binaries are in
	built    map[string]string // their paths, by package, as long as nothing was changed
	armed    map[string]int    // mutants that are there and can be switched on
}

// newLab copies the module at root to a folder of its own below dir.
func newLab(root, dir string) (*lab, error) {
	to, err := os.MkdirTemp(dir, "lab")
	if err != nil {
		return nil, err
	}
	l := &lab{root: filepath.Join(to, "module"), binaries: filepath.Join(to, "binaries"), built: make(map[string]string)}
	return l, errors.Join(copyModule(root, l.root), os.Mkdir(l.binaries, 0o755))
}

// An ending is how a test ended.
type ending int

const (
	unclear ending = iota // it was not run, or nobody knows
	passed
	skipped
	failed
	panicked
	hung
)

func (e ending) String() string {
	return [...]string{"was not run", "passed", "was skipped", "failed", "panicked", "hung"}[e]
}

// A survivor is the error of a mutant whose killers have let it pass.
type survivor struct{ killer killer }

func (s *survivor) Error() string { return "SURVIVED " + s.killer.String() }

// try makes the mutant, or switches it on, and returns nil if each of its killers kills
// it, a *survivor if one does not, and another error if that cannot be told. The last is
// a fault of the table: what does not compile, or what no test looked at, was not killed.
func (l *lab) try(ctx context.Context, m mutant) (output string, err error) {
	number := l.armed[m.name]
	if number == 0 {
		files, err := m.mutate(l.root)
		if err != nil {
			return "", err
		}
		restore, err := write(l.root, files)
		if err != nil {
			return "", err
		}
		clear(l.built)
		defer func() {
			clear(l.built)
			err = errors.Join(err, restore())
		}()
	}
	var all strings.Builder
	for _, k := range m.killers {
		want, limit := failed, patience
		switch m.ends {
		case "panic":
			want = panicked
		case "hang":
			want, limit = hung, hanging
		}
		end, output, err := l.test(ctx, k, limit, number)
		all.WriteString(output)
		switch {
		case err != nil:
			return all.String(), err
		case end == passed:
			return all.String(), &survivor{k}
		case end != want:
			return all.String(), fmt.Errorf("%s %v, want that it %v", k, end, want)
		}
	}
	return all.String(), nil
}

// build returns the test binary of a package.
func (l *lab) build(ctx context.Context, pkg string) (binary string, err error) {
	if binary, ok := l.built[pkg]; ok {
		return binary, nil
	}
	binary = filepath.Join(l.binaries, fmt.Sprint(len(l.built), ".test"))
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", binary, pkg)
	cmd.Dir = l.root
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+l.root)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	l.built[pkg] = binary
	return binary, nil
}

// test runs a killer, with the mutant of the given number switched on if that is not 0.
func (l *lab) test(ctx context.Context, k killer, limit time.Duration, number int) (ending, string, error) {
	binary, err := l.build(ctx, k.pkg)
	if err != nil {
		return unclear, "", err
	}
	parts := strings.Split(k.test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	cmd := exec.CommandContext(ctx, binary, "-test.run="+strings.Join(parts, "/"), "-test.v", "-test.timeout="+limit.String())
	cmd.Dir = filepath.Join(l.root, k.pkg)
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+cmd.Dir, fmt.Sprintf("%s=%d", switchVariable, number))
	cmd.WaitDelay = time.Second // a server that it has left may keep its output open
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return unclear, string(out), ctx.Err()
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return unclear, string(out), err
	}
	return endingOf(k.test, out), string(out), nil
}

// endingOf reads the output of a test binary.
func endingOf(test string, out []byte) ending {
	says := func(what string) bool {
		return regexp.MustCompile(`(?m)^ *--- ` + what + `: ` + regexp.QuoteMeta(test) + ` \(`).Match(out)
	}
	switch {
	case bytes.Contains(out, []byte("\npanic: test timed out after ")),
		bytes.Contains(out, []byte("\npanic: deadlock: ")): // of a bubble
		return hung
	case bytes.Contains(out, []byte("\npanic: ")), bytes.Contains(out, []byte("\nfatal error: ")):
		return panicked
	case says("FAIL"):
		return failed
	case says("SKIP"):
		return skipped
	case says("PASS"):
		return passed
	}
	return unclear
}
