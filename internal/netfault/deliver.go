// The writers of a connection, which apply the faults at the moment of delivery.

package netfault

import (
	"context"
	"net"
	"time"
)

const dialTimeout = 5 * time.Second

// write returns the goroutine that delivers one direction.
func (c *conn) write(dir Direction) func() {
	return func() {
		for {
			p, ok := c.queues[dir].pop(c.ctx.Done())
			if !ok || !c.deliver(dir, p) {
				return
			}
		}
	}
}

// deliver delivers p, or what the faults leave of it, and reports whether the
// direction goes on.
func (c *conn) deliver(dir Direction, p piece) bool {
	c.p.mu.Lock()
	swallowed := c.p.faults.swallow[dir] || c.lost[dir]
	if p.eof {
		defer c.p.mu.Unlock()
		c.end(dir, swallowed)
		return false
	}
	if swallowed {
		c.lost[dir] = true
		c.p.mu.Unlock()
		return true
	}
	data, cut := p.data, false
	if left := &c.p.faults.cut[dir]; *left != uncut {
		if cut = *left <= len(data); cut {
			data, *left = data[:*left], uncut
			c.lost[ToClient] = c.lost[ToClient] || dir == ToServer // no reply may slip through before the cut
		} else {
			*left -= len(data)
		}
	}
	if dir == ToServer && len(data) > 0 {
		c.outstanding = true
		c.loseReply = c.loseReply || p.loseReply
	}
	c.p.mu.Unlock()

	if err := c.send(dir, data); err != nil {
		c.p.mu.Lock()
		defer c.p.mu.Unlock()
		if dir == ToServer {
			c.reset()
			return false
		}
		c.lost[dir] = true // the client has left; the server may go on
		return true
	}
	if cut {
		c.p.mu.Lock()
		defer c.p.mu.Unlock()
		c.cut()
	}
	return !cut
}

// end passes on that the sender of a direction has closed its end. The caller
// holds Proxy.mu.
func (c *conn) end(dir Direction, swallowed bool) {
	switch {
	case dir == ToServer && c.server != nil:
		_ = c.server.CloseWrite()
	case dir == ToClient && !swallowed:
		c.clientGone = true
		_ = c.client.Close()
	}
}

func (c *conn) send(dir Direction, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if dir == ToClient {
		_, err := c.client.Write(data)
		return err
	}
	if c.server == nil { // written by this goroutine only
		if err := c.dial(); err != nil {
			return err
		}
	}
	_, err := c.server.Write(data)
	return err
}

// dial connects to the server, at the first byte for it: a black hole shows
// nobody whether there is a server behind it.
func (c *conn) dial() error {
	ctx, cancel := context.WithTimeout(c.ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	server, err := d.DialContext(ctx, "tcp", c.p.target)
	if err != nil {
		return err
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.aborted {
		abort(server.(*net.TCPConn))
		return net.ErrClosed
	}
	c.server = server.(*net.TCPConn)
	c.wg.Go(c.readServer)
	c.wg.Go(c.write(ToClient))
	return nil
}
