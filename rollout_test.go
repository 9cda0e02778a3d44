// A service that moves from redsync to redlock while it runs, instance by instance,
// and back: docs/migrating-from-redsync.md as a test, on real servers.

package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// A release is one version of an instance's code: work, under the lock.
type release func(ctx context.Context, work func()) error

// An instance is one process of the service, with connections of its own.
type instance struct {
	theirs    *redsync.Redsync
	old, both *redlock.Client // with the prefix "", and with the default one
}

func newInstance(t *testing.T, f *fleet) *instance {
	t.Helper()
	clients := make([]redis.UniversalClient, len(f.servers))
	for i := range clients {
		clients[i] = dial(t, f.addr(i), nil)
	}
	return &instance{
		theirs: redsync.New(pools(clients)...),
		old:    openClient(t, redlock.Redis(clients...), redlock.WithKeyPrefix("")),
		both:   openClient(t, redlock.Redis(clients...)),
	}
}

// redsync is the release that the service begins with.
func (in *instance) redsync(name string) release {
	return func(ctx context.Context, work func()) error {
		m := in.theirs.NewMutex(name, redsync.WithTries(1000), redsync.WithRetryDelayFunc(func(int) time.Duration { return rand.N(10 * time.Millisecond) }))
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		work()
		if ok, err := m.UnlockContext(ctx); !ok {
			return errors.Join(errors.New("not unlocked"), err)
		}
		return nil
	}
}

// shared is redlock on redsync's keys.
func (in *instance) shared(t *testing.T, name string) release { return doing(mutexOf(t, in.old, name)) }

// apart is redlock on its own keys.
func (in *instance) apart(t *testing.T, name string) release { return doing(mutexOf(t, in.both, name)) }

// twice takes both locks, that of the release before it first.
func (in *instance) twice(t *testing.T, name string) release {
	outer, inner := in.shared(t, name), in.apart(t, name)
	return func(ctx context.Context, work func()) error {
		var err error
		return errors.Join(outer(ctx, func() { err = inner(ctx, work) }), err)
	}
}

func doing(m *redlock.Mutex) release {
	return func(ctx context.Context, work func()) error {
		return m.Do(ctx, func(_ context.Context, l *redlock.Lease) error {
			work()
			return l.Err()
		})
	}
}

// TestRollout replaces redsync by redlock on its keys, that by both locks, that by
// redlock's own keys, and goes all the way back, one instance at a time under load.
func TestRollout(t *testing.T) {
	const instances, turns = 4, 8 // in each state
	f := startFleet(t, 5)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var inside, total atomic.Int32
	work := func() {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d holders at once", n)
		}
		time.Sleep(rand.N(time.Millisecond))
		total.Add(1)
		inside.Add(-1)
	}
	var versions [instances][]release
	for i := range versions {
		in := newInstance(t, f)
		versions[i] = []release{in.redsync("r"), in.shared(t, "r"), in.twice(t, "r"), in.apart(t, "r")}
	}
	var runs [instances]int // the version that each of them runs
	states := 0
	round := func() {
		states++
		var wg sync.WaitGroup
		for i, v := range runs {
			wg.Go(func() {
				for range turns {
					if err := versions[i][v](ctx, work); err != nil {
						t.Errorf("instance %d, version %d: %v", i, v, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	round()
	for _, step := range []int{1, 1, 1, -1, -1, -1} {
		for i := range runs {
			runs[i] += step
			round()
		}
	}
	if n := total.Load(); int(n) != states*instances*turns {
		t.Errorf("%d turns in %d states", n, states)
	}
	f.noLocks(10 * time.Second)
}

// TestRolloutSkipped shows what the steps are for: redsync and redlock on its own keys do
// not see each other.
func TestRolloutSkipped(t *testing.T) {
	f := startFleet(t, 3)
	in := newInstance(t, f)
	noErr(t, in.redsync("r")(t.Context(), func() {
		noErr(t, in.apart(t, "r")(t.Context(), func() {}))
		_, err := mutexOf(t, in.old, "r").TryLock(t.Context())
		is(t, err, redlock.ErrTaken)
	}))
	noErr(t, in.shared(t, "r")(t.Context(), func() {
		err := in.theirs.NewMutex("r").TryLock()
		if _, taken := errors.AsType[*redsync.ErrTaken](err); !taken {
			t.Errorf("redsync beside redlock on its keys: %v", err)
		}
	}))
}

// TestRolloutToken: a holder of redsync has no token, so that the fence does not see it.
// Two leases of redlock have rising ones, also when redsync had the lock between.
func TestRolloutToken(t *testing.T) {
	f := startFleet(t, 3)
	in := newInstance(t, f)
	m := mutexOf(t, in.old, "r")
	first := mustLock(t, m)
	mustUnlock(t, first)
	noErr(t, in.redsync("r")(t.Context(), func() {}))
	second := mustLock(t, m)
	mustUnlock(t, second)
	if second.FencingToken() <= first.FencingToken() {
		t.Errorf("token %d after %d", second.FencingToken(), first.FencingToken())
	}
}
