//go:build !linux

// Plain substitutes for what only Linux can do.

package redisproc

import "os/exec"

func dieWithParent(*exec.Cmd) {}

func kill(p *process) error { return p.Kill() }

func awaitStopped(*process) error { return nil }
