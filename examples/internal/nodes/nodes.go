// Package nodes gives an example its Redis nodes: those that the environment
// names, or five inside the program.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Env names the environment variable with the nodes, redis:// URLs or host:port,
// separated by commas.
const Env = "REDLOCK_NODES"

// Nodes is a set of Redis servers and the connections to them.
type Nodes struct {
	addrs    []string
	embedded *Embedded // nil if the environment has named some

	mu      sync.Mutex
	clients []redis.UniversalClient
}

// Open returns the nodes of $REDLOCK_NODES, or starts five in this process. TTL is
// that of the locks they will hold. Nothing is dialled yet.
func Open(ttl time.Duration) (*Nodes, error) {
	logging.Disable() // go-redis reports what its callers are told as well
	if list := os.Getenv(Env); list != "" {
		return &Nodes{addrs: strings.Split(list, ",")}, nil
	}
	e, err := StartEmbedded(5, ttl)
	if err != nil {
		return nil, err
	}
	return &Nodes{addrs: e.Addrs(), embedded: e}, nil
}

// Addrs returns the addresses as they were given, for the environment of another
// process.
func (n *Nodes) Addrs() []string { return n.addrs }

// Client makes a client of the lock with connections of its own, as each process
// has them.
func (n *Nodes) Client(opts ...redlock.Option) (*redlock.Client, error) {
	clients, err := n.Dial()
	if err != nil {
		return nil, err
	}
	return redlock.New(redlock.Redis(clients...), opts...)
}

// Dial makes one Redis client for each node. Close closes them.
func (n *Nodes) Dial() ([]redis.UniversalClient, error) {
	clients := make([]redis.UniversalClient, len(n.addrs))
	for i, addr := range n.addrs {
		opts := &redis.Options{Addr: strings.TrimSpace(addr)}
		if strings.Contains(addr, "://") {
			var err error
			if opts, err = redis.ParseURL(opts.Addr); err != nil {
				return nil, fmt.Errorf("%s: node %d is not a redis:// URL", Env, i+1) // the parser's own error quotes the password
			}
		}
		clients[i] = redis.NewClient(opts)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clients = append(n.clients, clients...)
	return clients, nil
}

// Close closes the connections, and ends the servers if they are in this process.
func (n *Nodes) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var faults []error
	for _, c := range n.clients {
		faults = append(faults, c.Close())
	}
	if n.embedded != nil {
		n.embedded.Close()
	}
	return errors.Join(faults...)
}

// Locks returns the keys of locks that are on the nodes, once for each node.
func (n *Nodes) Locks(ctx context.Context) (keys []string) {
	clients, err := n.Dial()
	if err != nil {
		return []string{err.Error()}
	}
	for _, c := range clients {
		found, err := c.Keys(ctx, "lock:*").Result()
		if err != nil {
			found = []string{err.Error()}
		}
		keys = append(keys, found...)
	}
	return keys
}
