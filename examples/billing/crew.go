// The worker processes: started, listened to, killed, stopped.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// A crew is the worker processes of a run. Its methods are for one goroutine.
type crew struct {
	self    string // this executable
	members []*member
	events  chan event // of all members, in the order of each
	readers sync.WaitGroup
}

// A member is one worker process, as the parent sees it.
type member struct {
	id      int
	pid     int
	cmd     *exec.Cmd
	in      io.WriteCloser
	gone    bool // has exited, and its last event has been read
	killed  bool
	stopped bool
	asked   int // locks asked for, by its latest event
}

// startCrew starts one process of this executable per job. They connect and
// then wait for the order to begin.
func startCrew(jobs []job) (*crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crew{self: self, events: make(chan event, 64)}
	for _, j := range jobs {
		if err := c.hire(j); err != nil {
			c.stop(func(event) {})
			return nil, fmt.Errorf("start worker %d: %w", j.Worker, err)
		}
	}
	return c, nil
}

// hire starts one more.
func (c *crew) hire(j job) error {
	cmd := exec.Command(c.self)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	outlive(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	problems, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	m := &member{id: j.Worker, pid: cmd.Process.Pid, cmd: cmd, in: in}
	c.members = append(c.members, m)
	c.readers.Go(func() { c.listen(m, out, problems) })
	return json.NewEncoder(in).Encode(j)
}

// listen passes on what a worker says, and at last that it has exited.
func (c *crew) listen(m *member, out, problems io.Reader) {
	var other sync.WaitGroup
	other.Go(func() {
		for lines := bufio.NewScanner(problems); lines.Scan(); {
			c.events <- event{Kind: stderr, Text: lines.Text(), from: m}
		}
		_, _ = io.Copy(io.Discard, problems) // after an overlong line
	})
	for in := json.NewDecoder(out); ; {
		e := event{from: m}
		if err := in.Decode(&e); err != nil {
			break // the end of the output, or half an event of a killed worker
		}
		c.events <- e
	}
	_, _ = io.Copy(io.Discard, out)
	other.Wait()
	e := event{Kind: exited, from: m}
	if err := m.cmd.Wait(); err != nil {
		e.Text = err.Error()
	}
	c.events <- e
}

// tell gives all workers but some an order.
func (c *crew) tell(o order, but ...*member) {
	for _, m := range c.members {
		if !slices.Contains(but, m) {
			c.tellOne(m, o)
		}
	}
}

func (c *crew) tellOne(m *member, o order) {
	_ = json.NewEncoder(m.in).Encode(o) // a worker that has died says so by its exit
}

// note keeps what an event says about its sender. Call it for each event that
// is taken from the channel.
func (c *crew) note(e event) {
	e.from.gone = e.from.gone || e.Kind == exited
	e.from.asked = max(e.from.asked, e.Asked)
}

// running returns how many workers have not exited.
func (c *crew) running() int {
	n := 0
	for _, m := range c.members {
		if !m.gone {
			n++
		}
	}
	return n
}

// kill ends a worker as kill -9 does: it gets no chance to release anything.
func (c *crew) kill(m *member) {
	m.killed = true
	_ = m.cmd.Process.Kill() // fails only if it is dead already
}

// suspend stops a worker as kill -STOP does: it does nothing, and does not know
// it, until proceed.
func (c *crew) suspend(m *member) {
	m.stopped = true
	_ = suspend(m.cmd.Process) // fails only if it is dead already
}

func (c *crew) proceed(m *member) {
	m.stopped = false
	_ = proceed(m.cmd.Process) // as above
}

// stop tells all workers to end, kills those that do not in time, and returns
// when none is left. What they still say goes to hear.
func (c *crew) stop(hear func(event)) {
	for _, m := range c.members {
		_ = m.in.Close() // the signal to stop; a second close is harmless
		if m.stopped {
			c.proceed(m) // lest it does not hear
		}
	}
	limit := time.NewTimer(stopGrace + time.Second)
	defer limit.Stop()
	for c.running() > 0 {
		select {
		case e := <-c.events:
			c.note(e)
			hear(e)
		case <-limit.C:
			for _, m := range c.members {
				_ = m.cmd.Process.Kill()
			}
		}
	}
	c.readers.Wait()
}
