// What only Linux can do: let children die with their parent, kill a process
// with its children, and see that a process stands still.

package redisproc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// dieWithParent also gives the server a process group, so that a child which it
// forked to save its data can be killed with it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

func kill(p *process) error {
	select {
	case <-p.ended:
		return nil // its number may belong to somebody else by now
	default:
		return syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
}

// awaitStopped returns once the process stands still, a moment after SIGSTOP.
func awaitStopped(p *process) error {
	for deadline := time.Now().Add(stopTimeout); ; time.Sleep(50 * time.Microsecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			return err
		}
		// "pid (name) state ...": the name may contain anything.
		if i := bytes.LastIndexByte(stat, ')'); i >= 0 && bytes.HasPrefix(stat[i:], []byte(") T")) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d has not stopped after %v", p.Pid, stopTimeout)
		}
	}
}
