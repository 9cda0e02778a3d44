// Lines of waiters and their calls, over go-redis.

package redlock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// unaware reports, as 1, that the server does not know all who listen: those of a
// cluster do not know who does at another.
func (n *redisNode) unaware() int64 {
	if _, ok := n.client.(*redis.ClusterClient); ok {
		return 1
	}
	return 0
}

// Enlist runs a script. A server that runs none keeps no lines.
func (n *redisNode) Enlist(ctx context.Context, p *Place) (Reply, error) {
	if n.scriptless.Load() {
		return Reply{Verdict: Forbidden}, errNoLine
	}
	r, err := n.run(ctx, &Claim{Lock: p.Queue}, enlistRequest(p), nil)
	r.Ahead, r.Counter = r.Counter, 0
	return r, err
}

func (n *redisNode) Delist(ctx context.Context, p *Place) error {
	cmd := newOnce(ctx, "zrem", p.Queue, p.Waiter)
	return n.bounded(ctx).Process(ctx, cmd)
}

// How long a connection that says nothing is taken to be one, and an answer to
// whether it still is may take.
const (
	quietFor  = 5 * time.Second
	answersIn = 2 * time.Second
)

// Listen subscribes on a connection of its own, and asks now and then whether that
// is still there.
func (n *redisNode) Listen(ctx context.Context, channel string, ready func(), wake func(waiter string)) error {
	within, cancel := context.WithTimeout(ctx, answersIn)
	defer cancel()
	sub := n.bounded(within).Subscribe(within, channel)
	closed := context.AfterFunc(ctx, func() { _ = sub.Close() }) // it reads whatever ctx says
	defer func() {
		if closed() {
			_ = sub.Close()
		}
	}()
	patience, asked := answersIn, true
	for {
		message, err := sub.ReceiveTimeout(ctx, patience)
		if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() && !asked {
			// Not a PING, which the user would need a right to.
			if err = sub.Subscribe(ctx, channel); err == nil {
				patience, asked = answersIn, true
				continue
			}
		}
		if err != nil {
			return err
		}
		patience, asked = quietFor, false
		switch m := message.(type) {
		case *redis.Subscription:
			ready()
		case *redis.Message:
			wake(m.Payload)
		}
	}
}
