// Systems on which no process can be stopped from outside.

//go:build !unix

package main

import (
	"errors"
	"os"
)

const canSuspend = false

func suspend(*os.Process) error { return errors.ErrUnsupported }

func proceed(*os.Process) error { return errors.ErrUnsupported }
