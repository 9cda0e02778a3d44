// Package dockernode runs Redis nodes as containers, and brings trouble to them.
//
// Each test has a Docker network of its own, and reaches a node at its address
// there. The tempting alternative is a published port, but of a container that
// was cut off the port refuses connections, whereas a network that fails says
// nothing. Hosts other than Linux do not reach these addresses.
//
// A node dies with its test. After a test that was aborted it stops by itself, and
// the next test to start nodes removes what is left of it.
package dockernode

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

// Persistence is what a node has on disk when it is killed.
type Persistence int

const (
	// None keeps nothing.
	None Persistence = iota

	// RDB keeps what there was at the last SAVE.
	RDB

	// EverySec keeps all but perhaps the writes of the last two seconds.
	EverySec

	// Always keeps every write that was answered.
	Always
)

func (p Persistence) String() string { return [...]string{"none", "rdb", "everysec", "always"}[p] }

func (p Persistence) args() []string {
	return [...][]string{
		None:     {"--save", "", "--appendonly", "no"},
		RDB:      {"--save", "3600 1", "--appendonly", "no"},
		EverySec: {"--save", "", "--appendonly", "yes", "--appendfsync", "everysec"},
		Always:   {"--save", "", "--appendonly", "yes", "--appendfsync", "always"},
	}[p]
}

// Five returns the persistence of five nodes that are all alike.
func Five(p Persistence) []Persistence { return slices.Repeat([]Persistence{p}, 5) }

// A Node is one container. A method that fails has failed the test. Methods of one
// node must not be called at the same time.
type Node struct {
	t        testing.TB
	pool     *dockertest.Pool
	network  string // its ID
	addr     string // in the network
	resource *dockertest.Resource
}

const (
	// lifetime is how long a container runs at most after it was started. A test
	// takes a fraction of it.
	lifetime = 5 * time.Minute

	startTimeout = 30 * time.Second
)

// Start starts one node for each mode and waits until all answer. Where Docker
// cannot run them it skips the test; with "docker" in the comma-separated list of
// the environment variable REDLOCK_REQUIRE it fails the test instead.
func Start(t testing.TB, modes ...Persistence) []*Node {
	t.Helper()
	pool := Pool(t)
	sweep(t, pool)
	network := newNetwork(t, pool)
	nodes, errs := make([]*Node, len(modes)), make([]error, len(modes))
	t.Cleanup(func() { remove(t, pool, nodes) })
	var wg sync.WaitGroup
	for i, mode := range modes {
		wg.Go(func() { nodes[i], errs[i] = start(t, pool, network, i, mode) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return nodes
}

// start starts node i. It asks for its address explicitly: one that Docker chose
// could be given to another node during a restart.
func start(t testing.TB, pool *dockertest.Pool, network *network, i int, mode Persistence) (*Node, error) {
	repository, tag := image()
	resource, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository: repository,
		Tag:        tag,
		NetworkID:  network.ID,
		Labels:     network.Labels,
		Cmd:        append([]string{"--protected-mode", "no", "--dir", "/data"}, mode.args()...),
	}, func(c *docker.HostConfig) { c.PublishAllPorts = false })
	if err != nil {
		return nil, fmt.Errorf("dockernode: start: %w", err)
	}
	n := &Node{t: t, pool: pool, network: network.ID, addr: network.address(i), resource: resource}
	return n, errors.Join(n.expire(), n.disconnect(), n.connect(), n.ready())
}

// remove removes the nodes that were started, with their data.
func remove(t testing.TB, pool *dockertest.Pool, nodes []*Node) {
	var wg sync.WaitGroup
	for _, n := range nodes {
		if n != nil {
			wg.Go(func() {
				if err := pool.Purge(n.resource); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}

// Addr returns where clients reach the node. It stays the same.
func (n *Node) Addr() string { return n.addr + ":6379" }

// expire lets Docker stop the container at the end of its lifetime, also when this
// process is gone by then.
func (n *Node) expire() error { return n.resource.Expire(uint(lifetime.Seconds())) }
