// This library.

package peer

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

// Counters for names of a benchmark need not stay for a day. This is what the
// library demands at least, for its default clock bound of 10 s.
const counters = time.Hour + 10*time.Second

var withoutFencing = []redlock.Option{redlock.WithoutFencing()}

func redlockPeer(name, about string, opts ...redlock.Option) Peer {
	open := func(_ context.Context, env Env) (Session, error) { return openRedlock(env, opts) }
	return Peer{Name: name, About: about, Open: open, Waits: true, Extends: true, Renews: true, Nodes: true}
}

type redlockSession struct {
	client *redlock.Client
	redis  []*redis.Client
}

func openRedlock(env Env, opts []redlock.Option) (Session, error) {
	s := &redlockSession{redis: clients(env.Nodes)}
	universal := make([]redis.UniversalClient, len(s.redis))
	for i, c := range s.redis {
		universal[i] = c
	}
	nodes := redlock.Redis(universal...)
	set := []redlock.Option{redlock.WithTTL(env.TTL), redlock.WithFenceRetention(env.TTL + counters)}
	if env.Observe != nil {
		set = append(set, redlock.WithTrace(trace(nodes, env.Observe)))
	}
	var err error
	if s.client, err = redlock.New(nodes, append(set, opts...)...); err != nil {
		return nil, errors.Join(err, closeAll(s.redis))
	}
	return s, nil
}

// trace passes on what the nodes took. Late answers count as well: a slow node
// shall not look fast.
func trace(nodes []redlock.Node, observe func(int, string, time.Duration)) *redlock.Trace {
	index := make(map[string]int)
	for i, n := range nodes {
		index[n.Name()] = i
	}
	ops := map[string]string{"acquire": "lock", "release": "unlock"}
	return &redlock.Trace{NodeDone: func(d redlock.NodeDone) {
		if op, ok := ops[d.Op]; ok && d.Err == nil {
			observe(index[d.Node], op, d.Elapsed)
		}
	}}
}

func (s *redlockSession) Locker(name string) (Locker, error) {
	m, err := s.client.NewMutex(name)
	if err != nil {
		return nil, err
	}
	return &redlockLocker{mutex: m}, nil
}

func (s *redlockSession) Close() error { return errors.Join(s.client.Close(), closeAll(s.redis)) }

type redlockLocker struct {
	mutex *redlock.Mutex
	lease *redlock.Lease
}

func (l *redlockLocker) Lock(ctx context.Context) (err error) {
	l.lease, err = l.mutex.Lock(ctx)
	return err
}

func (l *redlockLocker) Extend(ctx context.Context) error { return l.lease.Extend(ctx) }
func (l *redlockLocker) Unlock(ctx context.Context) error { return l.lease.Unlock(ctx) }
func (l *redlockLocker) Left() time.Duration              { return l.lease.Remaining() }
func (l *redlockLocker) Lost() bool                       { return l.lease.Err() != nil }
