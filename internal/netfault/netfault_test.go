// The proxy as such: it passes everything, shows it, and leaves nothing behind.

package netfault_test

import (
	"bytes"
	"crypto/rand"
	"net"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/netfault"
)

func TestTransparent(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	if host, _, _ := net.SplitHostPort(p.Addr()); host != "127.0.0.1" {
		t.Errorf("Addr() = %s, want one on 127.0.0.1", p.Addr())
	}
	for range 3 {
		c := dial(t, p.Addr())
		c.ask("hello\n")
		c.ask(strings.Repeat("x", 5<<20) + "\n") // more than the proxy keeps
		b := make([]byte, 1<<16)
		rand.Read(b)
		b = append(bytes.ReplaceAll(b, []byte("\n"), nil), '\n')
		c.ask("*3\r\n$-7\r\n" + string(b))
		c.send("to the end\n")
		c.Conn.(*net.TCPConn).CloseWrite()
		c.wantEnd("to the end\n")
	}
}

func TestServerDown(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	old := dial(t, p.Addr())
	old.ask("a\n")
	s.Close()
	s.closeConns()
	old.wantEnd("")
	c := dial(t, p.Addr())
	c.send("b\n")
	c.wantEnd("")
}

func TestTap(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	var requests, replies []string
	ids := make(map[int]bool)
	p.Tap(func(conn int, dir netfault.Direction, b []byte) {
		ids[conn] = true
		switch dir {
		case netfault.ToServer:
			requests = append(requests, string(b))
		case netfault.ToClient:
			replies = append(replies, string(b))
		default:
			t.Errorf("direction %v", dir)
		}
	})
	c, d := dial(t, p.Addr()), dial(t, p.Addr())
	pipeline := resp("SET", "k", "two\r\nlines") + "inline\n" + resp("GET", "k") + resp()
	for i := range len(pipeline) { // in pieces of one byte
		c.send(pipeline[i : i+1])
	}
	c.want(pipeline)
	d.ask(pipeline)
	p.Blackhole(true)
	d.send("swallowed\n")
	d.wantSilence()
	p.Tap(nil)
	p.Blackhole(false)
	dial(t, p.Addr()).ask("unseen\n")

	one := []string{resp("SET", "k", "two\r\nlines"), "inline\n", resp("GET", "k"), resp()}
	want := append(append(append([]string{}, one...), one...), "swallowed\n")
	if got, want := strings.Join(requests, "|"), strings.Join(want, "|"); got != want {
		t.Errorf("requests %q, want %q", got, want)
	}
	if got := strings.Join(replies, ""); got != pipeline+pipeline {
		t.Errorf("replies %q", got)
	}
	if len(ids) != 2 || !ids[1] || !ids[2] {
		t.Errorf("connections %v, want 1 and 2", ids)
	}
}

func TestConns(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	wait := func(want int) {
		t.Helper()
		s.await(t, func() bool { return p.Conns() == want }, func() {
			t.Fatalf("Conns() = %d, want %d", p.Conns(), want)
		})
	}
	wait(0)
	a, b := dial(t, p.Addr()), dial(t, p.Addr())
	a.ask("a\n")
	wait(2)
	a.Close()
	wait(1)
	p.CutAfter(1)
	b.send("b\n")
	wait(0)
}

// TestBounded: a server that does not read stops its client before long.
func TestBounded(t *testing.T) {
	for name, stall := range map[string]func(*netfault.Proxy){
		"held":    func(p *netfault.Proxy) { p.HoldRequests(netfault.Containing("x"), 0) },
		"delayed": func(p *netfault.Proxy) { p.Delay(time.Hour, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			p := netfault.New(t, s.Addr().String())
			stall(p)
			c := dial(t, p.Addr())
			c.SetWriteDeadline(time.Now().Add(time.Second))
			line := []byte(strings.Repeat("x", 1<<16) + "\n")
			for total := 0; ; {
				n, err := c.Write(line)
				if total += n; err != nil {
					break
				}
				if total > 32<<20 { // socket buffers included
					t.Fatalf("%d bytes were accepted", total)
				}
			}
		})
	}
}

// TestCloseLeavesNothing closes a proxy in the middle of every fault.
func TestCloseLeavesNothing(t *testing.T) {
	s := serve(t)
	for name, fault := range map[string]func(*netfault.Proxy){
		"none":      func(*netfault.Proxy) {},
		"blackhole": func(p *netfault.Proxy) { p.Blackhole(true) },
		"mute":      func(p *netfault.Proxy) { p.Mute(true) },
		"refuse":    func(p *netfault.Proxy) { p.Refuse(true) },
		"delay":     func(p *netfault.Proxy) { p.Delay(time.Hour, time.Hour) },
		"drop":      func(p *netfault.Proxy) { p.DropReplies(1) },
		"cut":       func(p *netfault.Proxy) { p.CutAfter(1) },
		"hold":      func(p *netfault.Proxy) { p.HoldRequests(netfault.Containing("a"), 0) },
	} {
		p, err := netfault.Listen(s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		a, b := dial(t, p.Addr()), dial(t, p.Addr())
		a.ask("x\n")
		fault(p)
		a.Write([]byte("a\n"))
		b.Write([]byte(strings.Repeat("a\n", 1<<18)))
		for range 2 {
			p.Close()
		}
		if p.Conns() != 0 {
			t.Errorf("%s: Conns() = %d after Close", name, p.Conns())
		}
		if _, err := net.Dial("tcp", p.Addr()); err == nil {
			t.Errorf("%s: connected after Close", name)
		}
		p.Refuse(false)
		var stacks strings.Builder
		pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		if strings.Contains(stacks.String(), "internal/netfault.") {
			t.Fatalf("%s: after Close there are goroutines:\n%s", name, stacks.String())
		}
	}
}

// TestCloseWhileDialing closes a proxy that is just connecting to its server.
func TestCloseWhileDialing(t *testing.T) {
	s := serve(t)
	for i := range 500 {
		p, err := netfault.Listen(s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		dial(t, p.Addr()).send("x\n")
		time.Sleep(time.Duration(i%100) * time.Microsecond)
		p.Close()
	}
}

// TestSwitching flips everything while traffic flows, for the race detector.
func TestSwitching(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	var taps atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", p.Addr())
				if err != nil {
					continue
				}
				c.SetDeadline(time.Now().Add(5 * time.Millisecond))
				b := make([]byte, 64)
				for range 20 {
					if _, err := c.Write([]byte("line\n")); err != nil {
						break
					}
					if _, err := c.Read(b); err != nil {
						break
					}
				}
				c.Close()
			}
		}()
	}
	for i := range 100 {
		on := i%2 == 0
		p.Tap(func(int, netfault.Direction, []byte) { taps.Add(1) })
		p.Blackhole(on)
		time.Sleep(time.Millisecond)
		p.Mute(!on)
		p.Delay(time.Duration(i%3)*time.Millisecond, time.Duration(i%5)*time.Millisecond)
		p.DropReplies(i % 3)
		p.DropReplyTo(netfault.First(1, netfault.Containing("line")))
		p.CutAfter(i)
		p.CutReplyAfter(i)
		hold := p.HoldRequests(netfault.Containing("line"), time.Duration(i%4)*time.Millisecond)
		p.Mute(false)
		time.Sleep(time.Millisecond)
		hold.Release()
		p.Refuse(i%10 == 0)
		p.Conns()
	}
	p.Refuse(false)
	close(stop)
	for range 4 {
		<-done
	}
	p.Blackhole(false)
	p.Delay(0, 0)
	p.DropReplies(0)
	p.DropReplyTo(nil)
	p.CutAfter(-1)
	p.CutReplyAfter(-1)
	dial(t, p.Addr()).ask("still works\n")
	if taps.Load() == 0 {
		t.Error("no traffic was seen")
	}
}
