// Distance: proxies that hold up what passes through them.

package nodes

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/redis/go-redis/v9"
)

// A Network is the way to the nodes, as near or far as asked for.
type Network struct {
	Options []*redis.Options
	proxies []*netfault.Proxy
}

// CanDelay tells whether a proxy can stand in front of a node. It does no I/O.
func CanDelay(opts *redis.Options) error {
	switch {
	case opts.Network == "unix":
		return fmt.Errorf("node %s is a Unix socket, and delays need TCP", opts.Addr)
	case opts.TLSConfig != nil:
		return fmt.Errorf("node %s uses TLS, whose certificate does not fit a proxy", opts.Addr)
	}
	return nil
}

// Behind puts a proxy in front of each node whose delay is not zero. A delay is
// what a round trip takes longer; half of it each way.
func (s *Set) Behind(delays []time.Duration) (*Network, error) {
	n := &Network{}
	for i, opts := range s.Options {
		if i >= len(delays) || delays[i] == 0 {
			n.Options = append(n.Options, opts)
			continue
		}
		if err := CanDelay(opts); err != nil {
			return nil, errors.Join(err, n.Close())
		}
		p, err := netfault.Listen(opts.Addr)
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		p.Delay(delays[i]/2, delays[i]-delays[i]/2)
		n.proxies = append(n.proxies, p)
		far := *opts
		far.Addr = p.Addr()
		n.Options = append(n.Options, &far)
	}
	return n, nil
}

// Close ends the proxies.
func (n *Network) Close() error {
	var err error
	for _, p := range n.proxies {
		err = errors.Join(err, p.Close())
	}
	return err
}
