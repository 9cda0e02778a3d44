// What only Linux can do: let children die with their parent, run them as
// somebody else, and kill them with their own children.

package dbproc

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// prepare lets the command die with the program that starts it. PostgreSQL
// refuses to run as root, so it runs as nobody then.
func prepare(cmd *exec.Cmd) error {
	// SIGQUIT, not SIGKILL: PostgreSQL removes its shared memory then.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := nobody()
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return nil
}

// giveAway makes dir that of the user as whom the servers run.
func giveAway(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := nobody()
	if err != nil {
		return err
	}
	return os.Chown(dir, int(uid), int(gid))
}

func nobody() (uid, gid uint32, err error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return 0, 0, err
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("user nobody: %w", err)
	}
	group, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("user nobody: %w", err)
	}
	return uint32(id), uint32(group), nil
}

func kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
