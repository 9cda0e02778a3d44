// Package peer holds the locks that are compared, behind one interface.
package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Peer is a lock that can be measured.
type Peer struct {
	Name  string
	About string // one line for the report

	// Open connects to the nodes, or to what Serve has started.
	Open func(ctx context.Context, env Env) (Session, error)

	// Serve starts the server of a peer that does not use the nodes; nil for
	// others.
	Serve func(ctx context.Context) (Server, error)

	Waits   bool // Lock waits for a lock that is taken
	Extends bool
	Renews  bool // what is held is extended without being asked; its Lockers are Holders
	Nodes   bool // it tells how long each node took
}

// Server is what Serve has started.
type Server interface {
	Endpoint() string
	Close() error
}

// Env is where a session works.
type Env struct {
	Nodes    []*redis.Options
	Endpoint string // of the peer's own server
	TTL      time.Duration
	Observe  func(node int, op string, took time.Duration) // nil: nobody asks for single nodes
}

// A Session is a client: what one process of a user would have. Locker may be
// called concurrently.
type Session interface {
	Locker(name string) (Locker, error)
	Close() error
}

// A Locker locks one name. It is used by one goroutine.
type Locker interface {
	Lock(ctx context.Context) error
	Extend(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// A Holder is a Locker that knows of what it holds.
type Holder interface {
	Locker
	Left() time.Duration // until the lock must not be trusted
	Lost() bool
}

// Baseline is the name of the peer that all others are compared with.
const Baseline = "redsync"

// Groups of peers, by name.
const (
	Default      = "default"
	Alternatives = "alternatives"
)

// all are the peers, in the order of the tables.
func all() []Peer {
	return []Peer{
		redlockPeer("redlock", "this library, with fencing tokens, as it is by default"),
		redlockPeer("redlock-unfenced", "this library without fencing tokens", withoutFencing...),
		redsyncPeer(Baseline, "go-redsync/redsync v4, as it is by default", false),
		redsyncPeer("redsync-failfast", "go-redsync/redsync v4 with WithFailFast", true),
		redislockPeer(),
		floorPeer(),
		postgresAdvisory(),
		postgresRow(),
		etcdPeer(),
		zookeeperPeer(),
	}
}

// Names are all names that Select knows, but for the groups.
func Names() []string {
	var names []string
	for _, p := range all() {
		names = append(names, p.Name)
	}
	return names
}

// Select returns the peers of a list of names and groups, in the order of the
// tables, each once.
func Select(list []string) ([]Peer, error) {
	want := make(map[string]bool)
	var faults []error
	for _, name := range list {
		name = strings.TrimSpace(name)
		known := name == Default || name == Alternatives
		for _, p := range all() {
			if name == p.Name || name == Default && p.Serve == nil || name == Alternatives && p.Serve != nil {
				want[p.Name], known = true, true
			}
		}
		if !known {
			faults = append(faults, fmt.Errorf("%q: no such peer; there are %s, and the groups %s and %s",
				name, strings.Join(Names(), ", "), Default, Alternatives))
		}
	}
	peers := slices.DeleteFunc(all(), func(p Peer) bool { return !want[p.Name] })
	return peers, errors.Join(faults...)
}

// clients makes a go-redis client with default options for each node, as the
// documentation of the libraries does.
func clients(nodes []*redis.Options) []*redis.Client {
	made := make([]*redis.Client, len(nodes))
	for i, n := range nodes {
		opts := *n // NewClient fills in what is missing
		made[i] = redis.NewClient(&opts)
	}
	return made
}

func closeAll(clients []*redis.Client) error {
	var err error
	for _, c := range clients {
		err = errors.Join(err, c.Close())
	}
	return err
}

// errNoExtend is the answer of a peer whose locks last until they are given up.
var errNoExtend = errors.New("there is nothing to extend")
