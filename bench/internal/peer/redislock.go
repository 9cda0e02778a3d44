// bsm/redislock on one node: what a lock costs that needs no quorum.

package peer

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// pause is what redislock's documentation waits between two tries.
const pause = 100 * time.Millisecond

func redislockPeer() Peer {
	return Peer{
		Name:  "redislock",
		About: "bsm/redislock on the first node alone, looking every 100 ms for a lock that is taken: no quorum",
		Open: func(_ context.Context, env Env) (Session, error) {
			c := clients(env.Nodes[:1])[0]
			return &redislockSession{c, redislock.New(c), env.TTL}, nil
		},
		Waits: true, Extends: true,
	}
}

type redislockSession struct {
	redis  *redis.Client
	client *redislock.Client
	ttl    time.Duration
}

func (s *redislockSession) Locker(name string) (Locker, error) {
	return &redislockLocker{session: s, name: name}, nil
}

func (s *redislockSession) Close() error { return s.redis.Close() }

type redislockLocker struct {
	session *redislockSession
	name    string
	lock    *redislock.Lock
}

func (l *redislockLocker) Lock(ctx context.Context) (err error) {
	l.lock, err = l.session.client.Obtain(ctx, l.name, l.session.ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(pause)})
	return err
}

func (l *redislockLocker) Extend(ctx context.Context) error {
	return l.lock.Refresh(ctx, l.session.ttl, nil)
}

func (l *redislockLocker) Unlock(ctx context.Context) error { return l.lock.Release(ctx) }
