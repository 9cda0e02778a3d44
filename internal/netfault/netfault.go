// Package netfault is a TCP proxy on the loopback interface that misbehaves on
// demand, for tests of programs that talk to a Redis server.
//
// A [Proxy] stands between clients and one target. Its faults are switched
// while it runs, and apply to connections that exist already as well as to new
// ones. It parses requests, which are RESP arrays or lines, to count them and
// to pick one of them; the bytes pass unchanged, whatever they are.
package netfault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Proxy forwards TCP connections to a target. Its methods are safe for
// concurrent use.
type Proxy struct {
	target, addr string
	report       func(error) // fails the test, if there is one
	wg           sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	release  func()       // gives up the port that is kept meanwhile, if there is one
	conns    map[*conn]struct{}
	lastID   int
	closed   bool
	faults   faults

	tapMu sync.Mutex // calls of tap come one at a time
	tap   func(conn int, dir Direction, b []byte)
}

// A Direction is one of the two ways through a proxy.
type Direction int

// The two directions.
const (
	ToServer Direction = iota
	ToClient
)

func (d Direction) String() string {
	if d == ToServer {
		return "to server"
	}
	return "to client"
}

// New starts a proxy for the server at target. It closes with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	p.report = func(err error) { t.Error(err) }
	t.Cleanup(func() { p.Close() })
	return p
}

// Listen starts a proxy for the server at target. The caller must Close it.
func Listen(target string) (*Proxy, error) {
	l, err := listen()
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, addr: l.Addr().String(), conns: make(map[*conn]struct{})}
	p.faults.cut = [2]int{uncut, uncut}
	p.serve(l)
	return p, nil
}

// Ports of proxies lie below the ports that systems hand out for outgoing
// connections. Otherwise, while connections are refused, a client could be given
// the proxy's port, and could even connect to itself there.
const (
	firstPort   = 10000
	ports       = 2000
	listenTries = 100
)

func listen() (net.Listener, error) {
	var err error
	for range listenTries {
		var l net.Listener
		port := firstPort + rand.IntN(ports)
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("netfault: no port to listen on: %w", err)
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Conns returns the number of connections that clients hold open.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for c := range p.conns {
		if !c.clientGone {
			n++
		}
	}
	return n
}

// Close resets all connections and returns when no goroutine of the proxy is
// left. It may be called twice.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.shut()
	p.free()
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// shut closes the listener and resets all connections. The caller holds p.mu.
func (p *Proxy) shut() {
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		c.reset()
	}
}

// Refuse refuses, while on, new connections, as if no process listened. It resets
// those that exist, and what they still had queued is lost. If the port has gone
// when the fault ends, that is an error, which also fails the test.
func (p *Proxy) Refuse(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || on == (p.listener == nil):
		return nil
	case on:
		p.shut()
		p.release = reserve(p.addr)
		return nil
	}
	p.free()
	var l net.Listener
	var err error
	for range listenTries { // somebody may be trying the port out just now
		if l, err = net.Listen("tcp", p.addr); err == nil {
			p.serve(l)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	err = fmt.Errorf("netfault: Refuse(false): %w", err)
	if p.report != nil {
		p.report(err)
	}
	return err
}

// free gives up a port that was kept. The caller holds p.mu.
func (p *Proxy) free() {
	if p.release != nil {
		p.release()
		p.release = nil
	}
}

// serve accepts connections from l. The caller holds p.mu, or is alone with p.
func (p *Proxy) serve(l net.Listener) {
	p.listener = l
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of file descriptors, or the client has left
				time.Sleep(time.Millisecond)
				continue
			}
			p.add(l, client.(*net.TCPConn))
		}
	})
}

// add starts forwarding for a client that came in through l.
func (p *Proxy) add(l net.Listener, client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != l { // shut meanwhile
		abort(client)
		return
	}
	p.lastID++
	c := newConn(p, p.lastID, client)
	p.conns[c] = struct{}{}
	p.wg.Go(c.run)
}

// abort closes a connection with a reset.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
