// What a test does to a server that runs: kill, pause, resume, restart.

package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Kill kills the server (SIGKILL) and waits until it is gone. Of its memory
// nothing reaches the disk. Killing a stopped server does nothing.
func (s *Server) Kill() error { return s.control("kill", false, s.kill) }

// Pause stops the process (SIGSTOP) and returns once it stands still. The
// kernel goes on accepting connections and bytes for it.
func (s *Server) Pause() error {
	return s.control("pause", true, func() error {
		if err := pause(s.proc); err != nil {
			return err
		}
		s.paused = true
		return nil
	})
}

// Resume lets a paused process run on (SIGCONT). It then executes whatever
// arrived meanwhile.
func (s *Server) Resume() error { return s.control("resume", true, s.resume) }

// Restart starts the server again, on the same port, with the data that it left
// on disk. A running server is stopped cleanly first (SIGTERM), so it keeps all
// that its persistence can keep. For a crash, call Kill before.
func (s *Server) Restart() error {
	return s.control("restart", false, func() error {
		return errors.Join(s.stop(), s.startAgain())
	})
}

// RestartEmpty kills the server and starts it on the same port without data.
func (s *Server) RestartEmpty() error {
	return s.control("restart empty", false, func() error {
		return errors.Join(s.kill(), s.clear(), s.startAgain())
	})
}

// control runs one operation, alone, on a server that is not closed.
func (s *Server) control(op string, needsProcess bool, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("redisproc: %s %s: server is closed", op, s.Addr())
	}
	var err error
	if needsProcess && s.proc == nil {
		err = errors.New("server is not running")
	} else {
		err = f()
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("redisproc: %s %s: %w", op, s.Addr(), err)
	if s.report != nil {
		s.report(err)
	}
	return err
}

func (s *Server) kill() error {
	if s.proc == nil {
		return nil
	}
	if err := kill(s.proc); err != nil && !endedMeanwhile(err) {
		return err
	}
	return s.gone()
}

func (s *Server) resume() error {
	if err := resume(s.proc); err != nil {
		return err
	}
	s.paused = false
	return nil
}

// stop ends the process cleanly. A paused one must run for that.
func (s *Server) stop() error {
	if s.proc == nil {
		return nil
	}
	if s.paused {
		if err := s.resume(); err != nil && !endedMeanwhile(err) {
			return err
		}
	}
	if err := terminate(s.proc); err != nil && !endedMeanwhile(err) {
		return err
	}
	return s.gone()
}

// endedMeanwhile reports whether a signal found no process any more.
func endedMeanwhile(err error) bool {
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH)
}

// gone waits for the end of the process and forgets it.
func (s *Server) gone() error {
	if err := s.proc.wait(); err != nil {
		return err
	}
	s.proc, s.paused = nil, false
	return nil
}

// startAgain starts the server on its old port. Somebody may be trying that
// port out just now, so it is tried for a while.
func (s *Server) startAgain() error {
	if s.proc != nil {
		return nil // it could not be stopped, which is an error already
	}
	for deadline := time.Now().Add(stopTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := s.start(context.Background())
		if !errors.Is(err, errPortTaken) || time.Now().After(deadline) {
			return err
		}
	}
}

// clear empties the server's directory.
func (s *Server) clear() error {
	entries, err := os.ReadDir(s.Dir())
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.Dir(), e.Name())))
	}
	return err
}
