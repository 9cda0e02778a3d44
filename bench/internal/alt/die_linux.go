// Children that do not outlive the program.

package alt

import (
	"os/exec"
	"syscall"
)

func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
