// etcd's own lock, on leases.

package peer

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/quorumlock/redlock/bench/internal/alt"
)

func etcdPeer() Peer {
	return Peer{
		Name:  "etcd",
		About: "client/v3/concurrency on a cluster of three etcd members, one leased session per caller, which is made beforehand",
		Serve: func(ctx context.Context) (Server, error) { return alt.Etcd(ctx) },
		Open: func(_ context.Context, env Env) (Session, error) {
			c, err := clientv3.New(clientv3.Config{
				Endpoints: strings.Split(env.Endpoint, ","), DialTimeout: dialTimeout, Logger: zap.NewNop(),
			})
			if err != nil {
				return nil, err
			}
			return &etcdSession{client: c, ttl: int(math.Ceil(env.TTL.Seconds()))}, nil // its leases are in whole seconds
		},
		Waits: true, Extends: true,
	}
}

type etcdSession struct {
	client *clientv3.Client
	ttl    int

	mu     sync.Mutex
	leases []*concurrency.Session
}

// Locker makes a session for each caller: callers that share one share its locks.
func (s *etcdSession) Locker(name string) (Locker, error) {
	lease, err := concurrency.NewSession(s.client, concurrency.WithTTL(s.ttl))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.leases = append(s.leases, lease)
	s.mu.Unlock()
	return &etcdLocker{s.client, lease.Lease(), concurrency.NewMutex(lease, "/"+name)}, nil
}

func (s *etcdSession) Close() error {
	var err error
	for _, lease := range s.leases {
		err = errors.Join(err, lease.Close())
	}
	return errors.Join(err, s.client.Close())
}

type etcdLocker struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	mutex  *concurrency.Mutex
}

func (l *etcdLocker) Lock(ctx context.Context) error { return l.mutex.Lock(ctx) }

func (l *etcdLocker) Extend(ctx context.Context) error {
	_, err := l.client.KeepAliveOnce(ctx, l.lease)
	return err
}

func (l *etcdLocker) Unlock(ctx context.Context) error { return l.mutex.Unlock(ctx) }
