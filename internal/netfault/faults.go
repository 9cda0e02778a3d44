// The faults, and the switches that turn them on and off.

package netfault

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"
)

// faults is what is switched on. Proxy.mu guards it.
type faults struct {
	swallow     [2]bool // indexed by Direction, as are the others
	delay       [2]time.Duration
	cut         [2]int // bytes until the cut, or uncut
	dropReplies int
	dropReplyTo func(request []byte) bool
	hold        *Hold
}

const uncut = -1

// Blackhole swallows, while on, the bytes of both directions. Connections are
// accepted and stay open, also if the server closes its end. A connection that
// has lost bytes stays dead when the fault ends, because what came next would
// be misread; one that has not, and any new one, then works.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.swallow = [2]bool{on, on}
}

// Mute swallows, while on, only what the server sends: it executes requests but
// never answers. Otherwise it is like [Proxy.Blackhole], and replaces it.
func (p *Proxy) Mute(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.swallow = [2]bool{ToClient: on}
}

// Deafen swallows, while on, only what clients send: requests that the server had
// before are answered. Otherwise it is like [Proxy.Blackhole], and replaces it.
func (p *Proxy) Deafen(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.swallow = [2]bool{ToServer: on}
}

// Delay holds up all bytes that arrive from now on, each for the time given for
// its direction. Order is kept. The precision is that of timers, about 1 ms.
func (p *Proxy) Delay(toServer, toClient time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.delay = [2]time.Duration{ToServer: toServer, ToClient: toClient}
}

// DropReplies makes the next n replies get lost: when bytes arrive from the
// server on a connection with a request outstanding, they are discarded and the
// client's connection is closed.
func (p *Proxy) DropReplies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.dropReplies = n
}

// DropReplyTo loses, as [Proxy.DropReplies] does, whatever the server sends
// next on a connection after a request for which match returns true has been
// forwarded. For pipelined requests that may be the reply to an earlier one.
// Nil ends the fault; see [First] for losing a limited number. Functions that
// match requests are called concurrently for different connections.
func (p *Proxy) DropReplyTo(match func(request []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.dropReplyTo = match
}

// CutAfter cuts a connection as soon as exactly n more bytes of requests, of all
// connections together, have been forwarded to the server, and then never
// again. With n zero the next byte is one too many. The client's connection is
// closed; the server receives the n bytes and then the end of its input.
func (p *Proxy) CutAfter(n int) { p.cutAfter(ToServer, n) }

// CutReplyAfter is CutAfter for bytes of replies: the client receives n of them.
func (p *Proxy) CutReplyAfter(n int) { p.cutAfter(ToClient, n) }

func (p *Proxy) cutAfter(dir Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.cut[dir] = max(n, uncut)
}

// HoldRequests holds up every request for which match returns true by d, or
// until the Hold is released if d is not positive. What follows it on its
// connection waits behind it; other connections flow. A held request is
// delivered even if its client has gone away meanwhile. A new call replaces the
// previous one, whose requests stay held; a nil match only ends it.
func (p *Proxy) HoldRequests(match func(request []byte) bool, d time.Duration) *Hold {
	h := &Hold{match: match, d: d, held: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.hold = h
	return h
}

// A Hold is the effect of one call of [Proxy.HoldRequests].
type Hold struct {
	match          func([]byte) bool
	d              time.Duration
	heldOnce, done sync.Once
	held, released chan struct{}
}

// Held is closed when a first request has arrived and is held.
func (h *Hold) Held() <-chan struct{} { return h.held }

// Release lets all held requests go, and holds no more.
func (h *Hold) Release() { h.done.Do(func() { close(h.released) }) }

// takes reports whether request is to be held.
func (h *Hold) takes(request []byte) bool {
	if h == nil || h.match == nil {
		return false
	}
	select {
	case <-h.released:
		return false
	default:
	}
	if !h.match(request) {
		return false
	}
	h.heldOnce.Do(func() { close(h.held) })
	return true
}

// Tap calls f with every request that a client has sent, and with all bytes that
// the server has sent, before any fault. Connections are numbered from 1. Calls
// come one at a time; f must not keep b, nor call Tap. A nil f ends it.
func (p *Proxy) Tap(f func(conn int, dir Direction, b []byte)) {
	p.tapMu.Lock()
	defer p.tapMu.Unlock()
	p.tap = f
}

func (p *Proxy) observe(c *conn, dir Direction, b []byte) {
	p.tapMu.Lock()
	defer p.tapMu.Unlock()
	if p.tap != nil {
		p.tap(c.id, dir, b)
	}
}

// Containing matches requests that contain s.
func Containing(s string) func(request []byte) bool {
	return func(request []byte) bool { return bytes.Contains(request, []byte(s)) }
}

// First matches the first n requests that match does.
func First(n int, match func(request []byte) bool) func(request []byte) bool {
	var seen atomic.Int64
	return func(request []byte) bool { return match(request) && seen.Add(1) <= int64(n) }
}
