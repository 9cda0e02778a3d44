//go:build unix

// Signals.

package redisproc

import "syscall"

func pause(p *process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(p)
}

func resume(p *process) error { return p.Signal(syscall.SIGCONT) }

func terminate(p *process) error { return p.Signal(syscall.SIGTERM) }
