// redsync, which all others are compared with.

package peer

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func redsyncPeer(name, about string, failFast bool) Peer {
	open := func(_ context.Context, env Env) (Session, error) { return openRedsync(env, failFast), nil }
	return Peer{Name: name, About: about, Open: open, Waits: true, Extends: true, Nodes: true}
}

type redsyncSession struct {
	rs       *redsync.Redsync
	redis    []*redis.Client
	failFast bool
	opts     []redsync.Option
}

func openRedsync(env Env, failFast bool) *redsyncSession {
	s := &redsyncSession{
		redis: clients(env.Nodes), failFast: failFast,
		opts: []redsync.Option{redsync.WithExpiry(env.TTL), redsync.WithFailFast(failFast)},
	}
	pools := make([]redsyncredis.Pool, len(s.redis))
	for i, c := range s.redis {
		if env.Observe != nil {
			c.AddHook(stopwatch{i, env.Observe})
		}
		pools[i] = goredis.NewPool(c)
	}
	s.rs = redsync.New(pools...)
	return s
}

func (s *redsyncSession) Locker(name string) (Locker, error) {
	l := &redsyncLocker{mutex: s.rs.NewMutex(name, s.opts...)}
	if s.failFast {
		l.anew = func() *redsync.Mutex { return s.rs.NewMutex(name, s.opts...) }
	}
	return l, nil
}

func (s *redsyncSession) Close() error { return closeAll(s.redis) }

type redsyncLocker struct {
	mutex *redsync.Mutex
	anew  func() *redsync.Mutex // not nil if a mutex cannot be used again
}

// Lock makes a new mutex with WithFailFast: a release that Unlock has not waited for reads
// the value of the mutex only then, and would release with that of the next Lock.
func (l *redsyncLocker) Lock(ctx context.Context) error {
	if l.anew != nil {
		l.mutex = l.anew()
	}
	return l.mutex.LockContext(ctx)
}

func (l *redsyncLocker) Extend(ctx context.Context) error { return sure(l.mutex.ExtendContext(ctx)) }

func (l *redsyncLocker) Unlock(ctx context.Context) error { return sure(l.mutex.UnlockContext(ctx)) }

// sure makes one error of redsync's two results.
func sure(ok bool, err error) error {
	if err == nil && !ok {
		return errors.New("redsync reports no success, and no error")
	}
	return err
}

// A stopwatch is a go-redis hook that passes on what one node took.
type stopwatch struct {
	node    int
	observe func(node int, op string, took time.Duration)
}

func (s stopwatch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s stopwatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		start := time.Now()
		err := next(ctx, cmd)
		if err != nil {
			return err
		}
		switch cmd.Name() {
		case "set", "setnx":
			s.observe(s.node, "lock", time.Since(start))
		case "evalsha", "eval":
			s.observe(s.node, "unlock", time.Since(start))
		}
		return nil
	}
}

func (s stopwatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
