// The storage of the Jepsen tests: sets to which each holder of a lock adds, as
// most programs do it. It reads the set, and writes it back with one more in it.

package integration_test

import (
	"context"
	"net"
	"net/rpc"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock/fence"
)

// A store has each set twice: plain, and fenced by tokens.
type store struct {
	path   string // of its socket
	visits atomic.Int64

	mu            sync.Mutex
	guard         fence.Memory
	fenced, plain map[string][]int64
	accepted      map[string][]int64 // tokens of the fenced writes, in order
	written       map[string]int64   // the highest token of any write
	traps         map[*trap]bool
	slept         map[int64]bool // holds that were stopped past their validity
	sinners       []Visit        // which wrote all the same
}

// A Visit is what a holder says of itself when it reads or writes.
type Visit struct {
	Client    int
	ID        int64 // of its hold, which is also what it adds
	Name      string
	Token     int64
	Fenced    []int64 // what to write; without the ID in a visit that reads
	Plain     []int64
	Renewed   bool // so is its lease
	fromWrite bool
}

// A Content is what both sets of a name hold.
type Content struct{ Fenced, Plain []int64 }

// A trap is something that happens to the next client that comes and matches.
type trap struct {
	match        func(Visit) bool
	do           func(Visit)
	sprung, done chan struct{}
}

func openStore(t *testing.T) *store {
	t.Helper()
	s := &store{
		path:   filepath.Join(t.TempDir(), "store"),
		fenced: make(map[string][]int64), plain: make(map[string][]int64),
		accepted: make(map[string][]int64), written: make(map[string]int64),
		traps: make(map[*trap]bool), slept: make(map[int64]bool),
	}
	l, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	server := rpc.NewServer()
	if err := server.RegisterName("Store", desk{s}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go server.ServeConn(c)
		}
	}()
	return s
}

// A desk is where clients come.
type desk struct{ s *store }

// Read presents the token and returns the sets as they are now, however long the
// answer takes.
func (d desk) Read(v *Visit, c *Content) error {
	s := d.s
	s.mu.Lock()
	_ = s.guard.Check(context.Background(), v.Name, v.Token) // it will be refused again at the write
	c.Fenced, c.Plain = s.fenced[v.Name], s.plain[v.Name]    // never changed, only replaced
	s.mu.Unlock()
	s.visits.Add(1)
	s.spring(*v)
	return nil
}

// Write replaces the sets, however long the write is on its way. It answers
// whether the fenced one took it.
func (d desk) Write(v *Visit, accepted *bool) error {
	s := d.s
	v.fromWrite = true
	s.spring(*v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slept[v.ID] {
		s.sinners = append(s.sinners, *v)
	}
	s.plain[v.Name] = append(v.Plain, v.ID)
	s.written[v.Name] = max(s.written[v.Name], v.Token)
	if err := s.guard.Check(context.Background(), v.Name, v.Token); err == nil {
		s.fenced[v.Name] = append(v.Fenced, v.ID)
		s.accepted[v.Name] = append(s.accepted[v.Name], v.Token)
		*accepted = true
	}
	return nil
}

// spring does what a trap for this visit says.
func (s *store) spring(v Visit) {
	s.mu.Lock()
	for tr := range s.traps {
		if tr.match(v) {
			delete(s.traps, tr)
			s.mu.Unlock()
			close(tr.sprung)
			defer close(tr.done)
			tr.do(v)
			return
		}
	}
	s.mu.Unlock()
}

// catch does something while a client that matches reads or writes, before it is
// answered. It returns when that is over, or with false if none comes in time.
func (s *store) catch(match func(Visit) bool, within time.Duration, do func(Visit)) bool {
	tr := &trap{match: match, do: do, sprung: make(chan struct{}), done: make(chan struct{})}
	s.mu.Lock()
	s.traps[tr] = true
	s.mu.Unlock()
	select {
	case <-tr.sprung:
	case <-time.After(within):
		s.mu.Lock()
		missed := s.traps[tr]
		delete(s.traps, tr)
		s.mu.Unlock()
		if missed {
			return false
		}
	}
	<-tr.done
	return true
}

// overtaken waits until a holder with a higher token has written.
func (s *store) overtaken(v Visit, within time.Duration) bool {
	return eventually(within, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.written[v.Name] > v.Token
	})
}

// sleeps notes that a holder was stopped for longer than its lease can last.
func (s *store) sleeps(v Visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slept[v.ID] = true
}
