// Children that do not outlive the program.

package alt

import (
	"os/exec"
	"syscall"
)

// dieWithParent also takes the command out of the program's process group: an
// interrupt from the keyboard must reach the program only, which then closes up.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
