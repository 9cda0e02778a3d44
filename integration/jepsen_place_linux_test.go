// The processes of the clients, seen by the test that starts and kills them.

package integration_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A place is where a client is, and others were before it.
type place struct {
	j       *jepsen
	number  int
	life    int
	process *os.Process
	input   io.WriteCloser
	ended   chan struct{} // closed when the process is gone
}

// start puts a new client in its place.
func (p *place) start() error {
	o := p.j.orders
	o.Client, o.Life, o.Seed, o.Store = p.number, p.life, p.j.seed, p.j.store.path
	o.Journal = p.j.journal(p.number)
	for _, link := range p.j.links[p.number] {
		o.Nodes = append(o.Nodes, link.Addr())
	}
	p.life++
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := reexec(p.j.Context(), "TestJepsenClient", jepsenEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &out, &out
	if p.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // see reexec
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(ended)
		if err := cmd.Wait(); err != nil && !killed(err) {
			p.j.Errorf("client %d: %v\n%s", p.number, err, &out)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.process, p.ended = cmd.Process, ended
	p.j.Cleanup(func() {
		_ = cmd.Process.Kill() // if the test has failed; also if it is stopped
		<-ended
	})
	return nil
}

// killed reports whether a process was ended by SIGKILL, as only these tests do.
func killed(err error) bool {
	exit, ok := err.(*exec.ExitError)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}

func (p *place) signal(s syscall.Signal) {
	if err := p.process.Signal(s); err != nil {
		p.j.Errorf("client %d: %v: %v", p.number, s, err)
	}
}

// replace kills the client, and puts another in its place.
func (p *place) replace() {
	p.signal(syscall.SIGKILL)
	<-p.ended
	if err := p.start(); err != nil {
		p.j.Error(err)
	}
}
