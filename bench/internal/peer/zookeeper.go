// ZooKeeper's lock recipe, on ephemeral nodes.

package peer

import (
	"context"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/quorumlock/redlock/bench/internal/alt"
)

func zookeeperPeer() Peer {
	return Peer{
		Name:  "zookeeper",
		About: "go-zookeeper/zk's Lock, ephemeral nodes on an ensemble of three ZooKeeper servers",
		Serve: func(ctx context.Context) (Server, error) { return alt.ZooKeeper(ctx) },
		Open: func(ctx context.Context, env Env) (Session, error) {
			c, events, err := zk.Connect(strings.Split(env.Endpoint, ","), env.TTL, zk.WithLogInfo(false), zk.WithLogger(silent{}))
			if err != nil {
				return nil, err
			}
			for c.State() != zk.StateHasSession {
				select {
				case <-events:
				case <-ctx.Done():
					c.Close()
					return nil, ctx.Err()
				}
			}
			go func() {
				for range events { // until the driver closes it; a full one is an error for it
					continue
				}
			}()
			return &zookeeperSession{c}, nil
		},
		Waits: true,
	}
}

// silent drops what the driver reports besides what its callers are told.
type silent struct{}

func (silent) Printf(string, ...any) {}

type zookeeperSession struct{ conn *zk.Conn }

func (s *zookeeperSession) Locker(name string) (Locker, error) {
	return &zookeeperLocker{zk.NewLock(s.conn, "/"+strings.ReplaceAll(name, "/", "-"), zk.WorldACL(zk.PermAll))}, nil
}

func (s *zookeeperSession) Close() error {
	s.conn.Close()
	return nil
}

// A zookeeperLocker ignores contexts, as its driver does.
type zookeeperLocker struct{ lock *zk.Lock }

func (l *zookeeperLocker) Lock(context.Context) error { return l.lock.Lock() }

func (l *zookeeperLocker) Extend(context.Context) error { return errNoExtend }

func (l *zookeeperLocker) Unlock(context.Context) error { return l.lock.Unlock() }
