// The libraries under test, behind one function.

package bench_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

// A locker locks and unlocks the resource of a name, once.
type locker func(ctx context.Context) error

// libraries make a factory of lockers for each library, on default go-redis
// clients of their own. A locker is used by one goroutine.
var libraries = map[string]func(b *testing.B, addrs []string) func(name string) locker{
	"redlock":           newRedlock(),
	"redlock-norenewal": newRedlock(redlock.WithoutRenewal()),
	"redlock-unfenced":  newRedlock(redlock.WithoutFencing()),
	"redsync":           newRedsync,
}

// compared are their names, in the order of the runs.
var compared = []string{"redlock", "redlock-norenewal", "redlock-unfenced", "redsync"}

func clients(b *testing.B, addrs []string) []redis.UniversalClient {
	b.Helper()
	all := make([]redis.UniversalClient, len(addrs))
	for i, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr})
		b.Cleanup(func() { c.Close() })
		all[i] = c
	}
	return all
}

func newRedlock(opts ...redlock.Option) func(*testing.B, []string) func(string) locker {
	return func(b *testing.B, addrs []string) func(string) locker {
		b.Helper()
		client, err := redlock.New(redlock.Redis(clients(b, addrs)...), opts...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { client.Close() })
		return func(name string) locker {
			m, err := client.NewMutex(name)
			if err != nil {
				b.Fatal(err)
			}
			return func(ctx context.Context) error {
				l, err := m.Lock(ctx)
				if err != nil {
					return err
				}
				return l.Unlock(ctx)
			}
		}
	}
}

func newRedsync(b *testing.B, addrs []string) func(string) locker {
	b.Helper()
	var pools []redsyncredis.Pool
	for _, c := range clients(b, addrs) {
		pools = append(pools, goredis.NewPool(c))
	}
	rs := redsync.New(pools...)
	return func(name string) locker {
		m := rs.NewMutex(name)
		return func(ctx context.Context) error {
			if err := m.LockContext(ctx); err != nil {
				return err
			}
			_, err := m.UnlockContext(ctx)
			return err
		}
	}
}

func key(library string, caller int64) string {
	return "bench-" + library + "-" + strconv.FormatInt(caller, 10)
}
