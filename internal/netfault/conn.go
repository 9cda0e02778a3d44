// One connection through the proxy: two readers, two queues, two writers. This
// file has its life and its readers, which note when their bytes are due.

package netfault

import (
	"bytes"
	"context"
	"net"
	"sync"
	"time"
)

const readSize = 32 << 10

type conn struct {
	p      *Proxy
	id     int
	client *net.TCPConn
	queues [2]*queue
	wg     sync.WaitGroup

	ctx  context.Context // ends when nothing more is to be delivered
	halt context.CancelFunc

	// Proxy.mu guards what follows.
	server      *net.TCPConn // nil until there is something to deliver
	clientGone  bool
	lost        [2]bool // bytes of this direction were swallowed
	outstanding bool    // a request went out and no reply came back since
	loseReply   bool    // what the server sends next gets lost
	aborted     bool
}

func newConn(p *Proxy, id int, client *net.TCPConn) *conn {
	ctx, halt := context.WithCancel(context.Background())
	return &conn{
		p: p, id: id, client: client, ctx: ctx, halt: halt,
		queues: [2]*queue{newQueue(), newQueue()},
	}
}

// run forwards until both ends are done.
func (c *conn) run() {
	c.wg.Go(c.readClient)
	c.wg.Go(c.write(ToServer))
	c.wg.Wait()
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.reset()
	delete(c.p.conns, c)
}

// reset ends the connection at both ends at once. The caller holds Proxy.mu.
func (c *conn) reset() {
	c.aborted, c.clientGone = true, true
	c.halt()
	abort(c.client)
	if c.server != nil {
		abort(c.server)
	}
}

// cut ends the connection for the client. The server sees the end of its input
// behind what it has been sent, and is read until it closes: a reset could
// overtake requests that it has not read yet. The caller holds Proxy.mu.
func (c *conn) cut() {
	c.clientGone = true
	c.halt()
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.CloseWrite()
	}
}

func (c *conn) readClient() {
	var requests framer
	buf := make([]byte, readSize)
	for {
		n, err := c.client.Read(buf)
		if n > 0 {
			chunk, pushed, start := buf[:n], 0, 0
			requests.feed(chunk, func(request []byte, end int) {
				c.p.observe(c, ToServer, request)
				if p, ok := c.special(request); ok {
					c.push(ToServer, piece{data: chunk[pushed:start]})
					p.data, pushed = chunk[start:end], end
					c.push(ToServer, p)
				}
				start = end
			})
			c.push(ToServer, piece{data: chunk[pushed:]})
		}
		if err != nil {
			c.p.mu.Lock()
			c.clientGone = true
			c.p.mu.Unlock()
			c.push(ToServer, piece{eof: true})
			return
		}
	}
}

// special returns the marked piece, still empty, for a request that a fault
// picks out.
func (c *conn) special(request []byte) (p piece, ok bool) {
	c.p.mu.Lock()
	hold, drop := c.p.faults.hold, c.p.faults.dropReplyTo
	c.p.mu.Unlock()
	if hold.takes(request) {
		p.hold = hold
	}
	p.loseReply = drop != nil && drop(request)
	return p, p.hold != nil || p.loseReply
}

func (c *conn) readServer() {
	buf := make([]byte, readSize)
	for {
		n, err := c.server.Read(buf)
		if n > 0 {
			c.p.observe(c, ToClient, buf[:n])
			if !c.replyLost() {
				c.push(ToClient, piece{data: buf[:n]})
			}
		}
		if err != nil {
			c.push(ToClient, piece{eof: true})
			return
		}
	}
}

// replyLost decides about bytes that have come from the server.
func (c *conn) replyLost() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	f := &c.p.faults
	outstanding := c.outstanding
	c.outstanding = false
	switch {
	case c.loseReply:
		c.loseReply = false
	case outstanding && f.dropReplies > 0 && !f.swallow[ToClient]:
		f.dropReplies--
	default:
		return false
	}
	c.cut()
	return true
}

// push queues a copy of a piece for when it is due.
func (c *conn) push(dir Direction, p piece) {
	if len(p.data) == 0 && !p.eof {
		return
	}
	p.data = bytes.Clone(p.data)
	c.p.mu.Lock()
	p.due = time.Now().Add(c.p.faults.delay[dir])
	c.p.mu.Unlock()
	c.queues[dir].push(p, c.ctx.Done())
}
