// Faults of single requests and replies: lost, cut, late.

package netfault_test

import (
	"io"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/netfault"
)

func TestDropReplies(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	old := dial(t, p.Addr())
	old.ask("a\n")
	p.DropReplies(2)
	old.send("b\n")
	old.wantEnd("")
	fresh := dial(t, p.Addr())
	fresh.send("c\n")
	fresh.wantEnd("")
	dial(t, p.Addr()).ask("d\n")
	s.wantReceived(t, "a\nb\nc\nd\n")

	// What the server sends of its own accord is no reply.
	c := dial(t, p.Addr())
	c.ask("e\n")
	p.DropReplies(1)
	s.mu.Lock()
	io.WriteString(s.conns[len(s.conns)-1], "news\n")
	s.mu.Unlock()
	c.want("news\n")
	c.send("f\n")
	c.wantEnd("")
}

func TestDropReplyTo(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	p.DropReplyTo(netfault.First(1, netfault.Containing("set")))
	c := dial(t, p.Addr())
	c.ask("hello\n")
	c.send("set\n")
	c.wantEnd("")
	dial(t, p.Addr()).ask("set\n")
	p.DropReplyTo(netfault.Containing("set"))
	p.DropReplyTo(nil)
	dial(t, p.Addr()).ask("set\n")
	s.wantReceived(t, "hello\nset\nset\nset\n")
}

func TestCutAfter(t *testing.T) {
	const request = "first line\nsecond\n"
	for n := range len(request) + 1 {
		s := serve(t)
		p := netfault.New(t, s.Addr().String())
		old := dial(t, p.Addr())
		old.ask("a\n")
		p.CutAfter(n)
		old.send(request)
		old.wantEnd("")
		if n > 0 {
			s.await(t, func() bool { return s.ended == 1 }, func() { t.Fatal("the server does not see the end") })
		}
		s.wantReceived(t, "a\n"+request[:n])
		dial(t, p.Addr()).ask(request) // once is enough
	}
}

// TestCutBeatsReply: even a server that answers at once cannot get a reply
// through before the cut that its request has caused.
func TestCutBeatsReply(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	for range 500 {
		c := dial(t, p.Addr())
		c.ask("a\n")
		p.CutAfter(2)
		c.send("b\n")
		c.wantEnd("")
	}
}

func TestCutAfterCountsAllConnections(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	c, d := dial(t, p.Addr()), dial(t, p.Addr())
	p.CutAfter(5)
	c.ask("a\n")
	d.ask("b\n")
	c.send("c\n")
	c.wantEnd("")
	s.wantReceived(t, "a\nb\nc")
	d.ask("d\n")
	p.CutAfter(5)
	p.CutAfter(-1)
	d.ask("never cut\n")
}

func TestCutReplyAfter(t *testing.T) {
	const reply = "first line\nsecond\n"
	for n := range len(reply) + 1 {
		s := serve(t)
		p := netfault.New(t, s.Addr().String())
		c := dial(t, p.Addr())
		c.ask("a\n")
		p.CutReplyAfter(n)
		c.send(reply)
		c.wantEnd(reply[:n])
		dial(t, p.Addr()).ask(reply)
	}
}

func TestHoldRequests(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	c, other := dial(t, p.Addr()), dial(t, p.Addr())
	c.ask("a\n")
	hold := p.HoldRequests(netfault.First(1, netfault.Containing("set")), 0)
	select {
	case <-hold.Held():
		t.Fatal("held before anything came")
	default:
	}
	c.send("before\nset\nbehind\n")
	c.want("before\n")
	<-hold.Held()
	c.wantSilence()
	other.ask("del\n")
	other.ask("set 2\n")
	c.Close() // it has given up, but its request is on the way
	other.ask("b\n")
	hold.Release()
	s.wantReceived(t, "a\nbefore\ndel\nset 2\nb\nset\nbehind\n")
	hold.Release()
	other.ask("set 3\n")
}

func TestHoldRequestsForTime(t *testing.T) {
	const d = 80 * time.Millisecond
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	p.HoldRequests(netfault.Containing("set"), d)
	c, other := dial(t, p.Addr()), dial(t, p.Addr())
	start := time.Now()
	c.send("se")
	other.ask("get\n")
	if took := time.Since(start); took > d {
		t.Errorf("an unmatched request took %v", took)
	}
	c.send("t\n") // the request is recognised though it comes in two parts
	c.want("set\n")
	if took := time.Since(start); took < d {
		t.Errorf("a held request took %v, want at least %v", took, d)
	}

	hold := p.HoldRequests(netfault.Containing("set"), time.Hour)
	c.send("set\n")
	<-hold.Held()
	hold.Release()
	c.want("set\n")

	hold = p.HoldRequests(netfault.Containing("set"), 0)
	c.send("set\n")
	<-hold.Held()
	p.HoldRequests(nil, 0)
	other.ask("set\n")
	hold.Release()
	c.want("set\n")
}
