// How a process is stopped and continued.

//go:build unix

package main

import (
	"os"
	"syscall"
)

const canSuspend = true

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
