// A line server to put behind the proxy, and a client that knows what to expect.

package netfault_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	patience = 10 * time.Second       // for what must happen
	silence  = 100 * time.Millisecond // in which nothing may happen
)

// A server answers every line with the same line. It keeps what it received.
type server struct {
	net.Listener

	mu       sync.Mutex
	received string // of all connections, in order of arrival
	conns    []net.Conn
	ended    int // connections whose end of input was seen
}

func serve(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			wg.Go(func() { s.answer(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.closeConns()
		wg.Wait()
	})
	return s
}

func (s *server) answer(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		s.mu.Lock()
		s.received += line
		if errors.Is(err, io.EOF) {
			s.ended++
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, line); err != nil {
			return
		}
	}
}

func (s *server) closeConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

// wantReceived waits until the server has received exactly want.
func (s *server) wantReceived(t *testing.T, want string) {
	t.Helper()
	s.await(t, func() bool { return s.received == want }, func() {
		t.Fatalf("the server received %q, want %q", s.received, want)
	})
}

func (s *server) await(t *testing.T, cond func() bool, otherwise func()) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		ok := cond()
		if !ok && time.Now().After(deadline) {
			defer s.mu.Unlock()
			otherwise()
			return
		}
		s.mu.Unlock()
		if ok {
			return
		}
	}
}

// A client is one connection to a proxy.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatalf("send %q: %v", s, err)
	}
}

// want reads exactly want.
func (c *client) want(want string) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, len(want))
	if n, err := io.ReadFull(c.r, b); err != nil || string(b) != want {
		c.t.Fatalf("received %q, %v, want %q", b[:n], err, want)
	}
}

func (c *client) ask(s string) {
	c.t.Helper()
	c.send(s)
	c.want(s)
}

// wantSilence checks that nothing comes, and that the connection stays open.
func (c *client) wantSilence() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(silence))
	if b, err := io.ReadAll(c.r); len(b) > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("received %q, %v, want silence on an open connection", b, err)
	}
}

// wantEnd checks that the connection ends, after exactly rest.
func (c *client) wantEnd(rest string) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(c.r)
	if string(b) != rest || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("received %q, %v, want %q and the end", b, err, rest)
	}
}

// resp encodes a request as clients of Redis do.
func resp(args ...string) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, arg := range args {
		b.WriteString("$" + strconv.Itoa(len(arg)) + "\r\n" + arg + "\r\n")
	}
	return b.String()
}
