// Redis servers inside this process, for a run that has no others.

package nodes

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Embedded is a set of independent in-memory servers on loopback ports.
type Embedded struct {
	nodes []*embeddedNode
	stop  chan struct{}
	clock sync.WaitGroup
}

type embeddedNode struct {
	server *miniredis.Miniredis
	step   time.Duration // the longest

	mu   sync.Mutex
	last time.Time // up to when the server's time has moved
}

// StartEmbedded starts n nodes. TTL is that of the locks they will hold; it
// sets how finely their time moves.
func StartEmbedded(n int, ttl time.Duration) (*Embedded, error) {
	e := &Embedded{stop: make(chan struct{})}
	for range n {
		node := &embeddedNode{server: miniredis.NewMiniRedis(), step: ttl / 200, last: time.Now()}
		if err := node.server.StartAddr("127.0.0.1:0"); err != nil {
			e.Close()
			return nil, fmt.Errorf("start an embedded node: %w", err)
		}
		// Not on every command: those inside a script run under the server's lock.
		node.server.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
			if strings.HasPrefix(command, "EVAL") {
				node.advance()
			}
			return false
		})
		e.nodes = append(e.nodes, node)
	}
	e.clock.Go(func() { e.drive(ttl / 400) })
	return e, nil
}

// drive moves the time of the nodes when no command does.
func (e *Embedded) drive(every time.Duration) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-ticks.C:
			for _, node := range e.nodes {
				node.advance()
			}
		}
	}
}

// advance moves the time of a node, which does not move by itself.
//
// A step also shortens the life of a key that was set just before it: a key can
// expire early by up to one step. The lock allows for clock errors up to 1 % of
// the TTL, and a step is at most half of this. When the machine is busy and
// advance is called late, the surplus is dropped instead of caught up: keys
// then live longer, and a lock that expires late is safe where one that
// expires early is not.
func (n *embeddedNode) advance() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	since := now.Sub(n.last)
	if since < n.step/4 {
		return // each step visits every key
	}
	n.last = now
	n.server.FastForward(min(since, n.step))
}

// Addrs returns the servers' addresses.
func (e *Embedded) Addrs() []string {
	all := make([]string, len(e.nodes))
	for i, node := range e.nodes {
		all[i] = node.server.Addr()
	}
	return all
}

// Close ends all servers.
func (e *Embedded) Close() {
	close(e.stop)
	e.clock.Wait()
	for _, node := range e.nodes {
		node.server.Close()
	}
}
