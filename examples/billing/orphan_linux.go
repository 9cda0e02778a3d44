// Letting a stopped worker end when the parent is killed.

package main

import (
	"os/exec"
	"syscall"
)

// outlive has a stopped worker continued if this process is killed, so that it
// sees the end of its input and ends, too.
func outlive(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGCONT} }
