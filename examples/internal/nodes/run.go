// Programs of this module as processes, for tests.

package nodes

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Build compiles the program of the test's folder and returns its path.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// A Process is a program that was started.
type Process struct {
	*exec.Cmd
	t testing.TB

	mu    sync.Mutex
	lines []string
	news  chan struct{} // closed by the next line
	ended chan struct{}
}

// Start starts a program that uses the nodes. It does not outlive the test.
func Start(t testing.TB, path string, n *Nodes, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(path, args...), t: t, news: make(chan struct{}), ended: make(chan struct{})}
	p.Env = append(os.Environ(), Env+"="+strings.Join(n.Addrs(), ","))
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = p.Stdout
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, in.Text())
			close(p.news)
			p.news = make(chan struct{})
			p.mu.Unlock()
		}
		_ = p.Wait() // ProcessState says how it ended
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // fails if it has ended
		<-p.ended
		if t.Failed() {
			t.Logf("process %d said:\n%s", p.Process.Pid, strings.Join(p.lines, "\n"))
		}
	})
	return p
}

// Says waits for a line that contains text, and returns it.
func (p *Process) Says(text string, within time.Duration) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	for {
		p.mu.Lock()
		lines, news := p.lines, p.news
		p.mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, text) {
				return line
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			p.t.Fatalf("process %d does not say %q within %v", p.Process.Pid, text, within)
		}
	}
}

// Lines returns what it has said so far.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.lines)
}

// Ends waits for the end and returns the exit code.
func (p *Process) Ends(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(within):
		p.t.Fatalf("process %d has not ended within %v", p.Process.Pid, within)
		return 0
	}
}
