//go:build !unix

// Systems without signals: a process can be ended, but neither paused nor asked
// to stop cleanly.

package redisproc

import "errors"

func pause(*process) error { return errors.ErrUnsupported }

func resume(*process) error { return errors.ErrUnsupported }

func terminate(p *process) error { return p.Kill() }
