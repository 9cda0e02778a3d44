// One run of redis-server: from the start of the process to its end.

package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	startTimeout = 30 * time.Second // generous: a loaded machine and a long append-only file
	stopTimeout  = 10 * time.Second
	pollInterval = 2 * time.Millisecond
)

var errPortTaken = errors.New("redisproc: port taken")

// A process is a started redis-server.
type process struct {
	*os.Process
	ended chan struct{} // closed once the process is gone and reaped
	state string        // how it ended; valid once ended is closed
}

// spawn starts cmd. One goroutine both starts it and waits for it, locked to its
// thread: Linux sends the death signal when the parent *thread* ends, and the
// runtime ends threads, for one when a goroutine returns without unlocking its
// own. This thread lives as long as the child.
func spawn(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	p := &process{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.Process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the state says the same, and more
		p.state = cmd.ProcessState.String()
		close(p.ended)
	}()
	return p, <-started
}

// wait waits until the process is gone.
func (p *process) wait() error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("redisproc: process %d still runs %v after it was told to end", p.Pid, stopTimeout)
	}
}

// start runs the server and waits until it answers. The caller holds s.mu, or is
// alone with s.
func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("no answer within %v", startTimeout))
	defer cancel()

	logFile, err := os.Create(s.logFile()) // of this run only: readiness depends on it
	if err != nil {
		return fmt.Errorf("redisproc: %w", err)
	}
	defer logFile.Close()

	args := []string{"--port", strconv.Itoa(s.port), "--bind", host, "--dir", s.Dir(), "--daemonize", "no"}
	if s.conf.file != "" {
		args = append([]string{s.confFile()}, args...)
	}
	cmd := exec.Command(s.conf.binary, append(args, s.conf.args...)...)
	cmd.Dir = s.Dir()
	cmd.Env = append(os.Environ(), s.conf.env...)
	cmd.Stdout, cmd.Stderr = logFile, logFile // files, not pipes: nothing to drain, and nothing for a forked child to keep open
	proc, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("redisproc: %w", err)
	}
	s.proc, s.paused = proc, false

	for {
		err := s.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-proc.ended:
			s.proc = nil
			log := s.logTail()
			if strings.Contains(log, "Address already in use") {
				return fmt.Errorf("%w: %d", errPortTaken, s.port)
			}
			return fmt.Errorf("redisproc: %s ended before it was ready (%s); its log ends:\n%s",
				s.conf.binary, proc.state, log)
		case <-ctx.Done():
			return fmt.Errorf("redisproc: %s on %s not ready: %w (%w); its log ends:\n%s",
				s.conf.binary, s.Addr(), context.Cause(ctx), err, s.logTail())
		case <-time.After(pollInterval):
		}
	}
}

// ready reports whether it is this very server that answers PONG: if the port
// was lost to another server, that one answers too.
func (s *Server) ready(ctx context.Context) error {
	c, err := dial(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer c.close()
	pong, err := c.do("PING")
	if denied(err) {
		return nil // up, and wants a password that we do not know
	}
	if err != nil {
		return err
	}
	if pong != "PONG" {
		return fmt.Errorf("PING answered %v", pong)
	}
	info, err := c.do("INFO", "server")
	if denied(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if text := fmt.Sprint(info); !strings.Contains(text, fmt.Sprintf("process_id:%d\r\n", s.proc.Pid)) {
		return errors.New("another server answers")
	}
	return nil
}

func denied(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "NOAUTH") || strings.HasPrefix(err.Error(), "NOPERM"))
}

// logTail returns the end of what the server printed since its last start.
func (s *Server) logTail() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4096):])
}
