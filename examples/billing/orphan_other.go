// Where a stopped worker cannot be helped.

//go:build !linux

package main

import "os/exec"

// outlive does nothing: whoever kills the parent with -9 while a worker is
// stopped has to kill that worker as well.
func outlive(*exec.Cmd) {}
