// The floor: what the network and the servers cost, with nearly nothing on top.

package peer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// compareAndDelete is the release that the description of Redlock gives.
const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`

const compareAndExpire = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end`

func floorPeer() Peer {
	return Peer{
		Name: "floor",
		About: "no library: SET NX PX and a compare-and-delete script, written to one TCP connection per node by one goroutine, " +
			"which reads the nearest quorum's answers; no timeouts, no waiting, no cleaning up",
		Open:    func(_ context.Context, env Env) (Session, error) { return &floorSession{env: env}, nil },
		Extends: true, Nodes: true,
	}
}

type floorSession struct {
	env Env

	mu    sync.Mutex
	conns []*rawConn
}

func (s *floorSession) Close() error {
	for _, c := range s.conns {
		_ = c.Close()
	}
	return nil
}

// Locker connects to all nodes. One that is down is left out while a quorum is up.
func (s *floorSession) Locker(name string) (Locker, error) {
	l := &floorLocker{name: name, ttl: s.env.TTL, need: len(s.env.Nodes)/2 + 1, observe: s.env.Observe}
	conns, down := make([]*rawConn, len(s.env.Nodes)), make([]error, len(s.env.Nodes))
	var wg sync.WaitGroup
	for i, opts := range s.env.Nodes {
		wg.Go(func() { conns[i], down[i] = dialNode(i, opts) })
	}
	wg.Wait()
	l.conns = slices.DeleteFunc(conns, func(c *rawConn) bool { return c == nil })
	s.mu.Lock()
	s.conns = append(s.conns, l.conns...)
	s.mu.Unlock()
	if len(l.conns) < l.need {
		return nil, fmt.Errorf("no quorum: %w", errors.Join(down...))
	}
	// The answers of the nearest are read first, and often those only.
	slices.SortFunc(l.conns, func(a, b *rawConn) int { return cmp.Compare(a.rtt, b.rtt) })
	return l, nil
}

type floorLocker struct {
	name    string
	ttl     time.Duration
	need    int
	observe func(int, string, time.Duration)
	conns   []*rawConn
	value   string
	request []byte
}

var errFloorTaken = errors.New("the lock is taken, and the floor does not wait")

func (l *floorLocker) Lock(ctx context.Context) error {
	l.value = rand.Text()
	l.request = appendCommand(l.request[:0], "SET", l.name, l.value, "NX", "PX", fmt.Sprint(l.ttl.Milliseconds()))
	return l.vote(ctx, "lock", func(reply []byte) bool { return bytes.Equal(reply, []byte("+OK")) })
}

func (l *floorLocker) Extend(ctx context.Context) error {
	l.request = appendCommand(l.request[:0], "EVALSHA", extendSHA, "1", l.name, l.value, fmt.Sprint(l.ttl.Milliseconds()))
	return l.vote(ctx, "extend", granted)
}

func (l *floorLocker) Unlock(ctx context.Context) error {
	l.request = appendCommand(l.request[:0], "EVALSHA", deleteSHA, "1", l.name, l.value)
	return l.vote(ctx, "unlock", granted)
}

func granted(reply []byte) bool { return bytes.Equal(reply, []byte(":1")) }

// vote writes to all nodes, and reads until a quorum has said yes.
func (l *floorLocker) vote(ctx context.Context, op string, yes func([]byte) bool) error {
	deadline, _ := ctx.Deadline()
	start := time.Now()
	for _, c := range l.conns {
		if err := c.send(l.request, deadline); err != nil {
			return fmt.Errorf("node %s: %w", c.name, err)
		}
	}
	got := 0
	var last []byte
	for _, c := range l.conns {
		if got == l.need && l.observe == nil {
			break // the others' answers are skipped when they are next in the way
		}
		reply, err := c.latest()
		if err != nil {
			return fmt.Errorf("node %s: %w", c.name, err)
		}
		if l.observe != nil {
			l.observe(c.node, op, time.Since(start))
		}
		if yes(reply) {
			got++
		} else {
			last = bytes.Clone(reply)
		}
	}
	switch {
	case got >= l.need:
		return nil
	case op == "lock" && bytes.Equal(last, []byte("$-1")):
		_ = l.Unlock(ctx) // of those that have granted; the error to report is the lock's
		return errFloorTaken
	}
	return fmt.Errorf("%s: %d of %d votes; a node says %q", op, got, l.need, last)
}

func nodeName(opts *redis.Options) string { return opts.Addr }
