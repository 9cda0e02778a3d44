// One run of a program: from its start to its end.

package dbproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// A process is a program that was started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}    // closed once it is gone and reaped
	state *os.ProcessState // valid once ended is closed
}

// run starts a command that writes to a log in dir.
func run(command []string, dir, log string) (*process, error) {
	file, err := os.Create(filepath.Join(dir, log))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir // the servers refuse a working directory that they cannot enter
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+dir)
	cmd.Stdout, cmd.Stderr = file, file
	if err := prepare(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux kills the child when the thread that started it ends, which
		// this one does not before the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the state says the same
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// wait waits for the end, and kills the process if it does not come in time.
func (p *process) wait(timeout time.Duration) error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(timeout):
	}
	err := fmt.Errorf("process %d still ran after %v, and was killed", p.cmd.Process.Pid, timeout)
	if killErr := kill(p.cmd.Process); killErr != nil {
		return errors.Join(err, killErr)
	}
	<-p.ended
	return err
}

func (p *process) succeeded() bool { return p.state != nil && p.state.Success() }

// stop asks the process to end, and waits for it.
func (p *process) stop(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, kill(p.cmd.Process))
	}
	return p.wait(stopTimeout)
}
