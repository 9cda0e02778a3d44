// Where redlock differs from redsync on purpose: each fault on both libraries.
//
// What is said about redsync documents v4.18.1 and is only logged if it has
// changed; what redlock does must hold.

package redlock_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
)

// A bout is a fault for both: three servers behind proxies, and a client of
// each library with warm connections.
type bout struct {
	*fleet
	t      *testing.T
	ours   *redlock.Client
	theirs *redsync.Redsync
}

func newBout(t *testing.T, opts ...redlock.Option) *bout {
	t.Helper()
	f := startProxied(t, 3)
	opts = append([]redlock.Option{redlock.WithKeyPrefix("")}, opts...)
	b := &bout{fleet: f, t: t, ours: f.open(opts...)}
	warm(t, b.ours)

	// With its default options go-redis ignores the end of a context (M1).
	heedful := func(o *redis.Options) { o.ContextTimeoutEnabled = true }
	var clients []redis.UniversalClient
	for i := range f.servers {
		clients = append(clients, dial(t, f.addr(i), heedful))
	}
	b.theirs = redsync.New(pools(clients)...)
	m := b.theirs.NewMutex("warm-up-of-redsync")
	noErr(t, m.Lock())
	if ok, err := m.Unlock(); !ok {
		t.Fatal(err)
	}
	return b
}

// peer logs that redsync has changed.
func (b *bout) peer(asBefore bool, what string) {
	b.t.Helper()
	if !asBefore {
		b.t.Logf("redsync no longer: %s", what)
	}
}

// values returns what each server holds at a key; "(nil)" stands for none.
func (b *bout) values(key string) []string {
	b.t.Helper()
	values := make([]string, len(b.servers))
	for i, s := range b.servers {
		v, err := s.Do("GET", key)
		noErr(b.t, err)
		values[i] = v
	}
	return values
}

func (b *bout) holding(key string) int {
	b.t.Helper()
	return len(slices.DeleteFunc(b.values(key), func(v string) bool { return v == "(nil)" }))
}

func (b *bout) del(key string, servers ...int) {
	b.t.Helper()
	for _, i := range servers {
		_, err := b.servers[i].Do("DEL", key)
		noErr(b.t, err)
	}
}

// expire lets a lock end as its TTL would.
func (b *bout) expire(key string) { b.del(key, 0, 1, 2) }

// M6. A caller who leaves must not leave the lock behind: redsync releases with
// the context that has ended, so nothing is sent, and the key stays for its TTL.
// We release on a context of our own.
func TestMutexM6CancelledAcquire(t *testing.T) {
	b := newBout(t)
	slow := func(d time.Duration) {
		for _, p := range b.proxies[1:] {
			p.Delay(d/2, d/2)
		}
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}

	slow(400 * time.Millisecond)
	if err := b.theirs.NewMutex("theirs", redsync.WithExpiry(time.Minute)).TryLockContext(soon()); err == nil {
		t.Error("the context did not end")
	}

	l, err := mutexOf(t, b.ours, "ours", redlock.WithTTL(time.Minute)).TryLock(soon())
	is(t, err, context.DeadlineExceeded)
	if l != nil {
		t.Error("a lease and an error")
	}
	time.Sleep(500 * time.Millisecond) // what was on its way has arrived
	slow(0)
	if !eventually(10*time.Second, func() bool { return b.holding("ours") == 0 }) {
		t.Errorf("ours is left: %q", b.values("ours"))
	}
	b.peer(b.holding("theirs") >= 2, "leaves its key behind on a quorum")
	mustUnlock(t, mustLock(t, mutexOf(t, b.ours, "ours")))
}

// M9. A lost reply must not make a free lock look taken: go-redis sends redsync's
// SET again and reports what the second one met, which is the first one's key. We
// send nothing twice, and count such a node neither as granting nor as refusing.
func TestMutexM9LostReply(t *testing.T) {
	b := newBout(t)
	lose := func(what string) {
		for _, p := range b.proxies[1:] {
			p.DropReplyTo(netfault.First(1, netfault.Containing(what)))
		}
	}
	lose("theirs")
	err := b.theirs.NewMutex("theirs").TryLock()
	_, taken := errors.AsType[*redsync.ErrTaken](err)
	b.peer(taken, "takes a lost reply for another holder")

	lose("ours")
	m := mutexOf(t, b.ours, "ours")
	_, err = m.TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum, io.EOF)
	isNot(t, err, redlock.ErrTaken)
	lose("ours")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := m.Lock(ctx) // and it is over with the next attempt
	noErr(t, err)
	mustUnlock(t, l)
}

// M16. An Unlock has done its work when no quorum can hold the lock any more,
// even if it was not a quorum that released it.
func TestMutexM16UnlockWithoutQuorum(t *testing.T) {
	b := newBout(t, redlock.WithNodeTimeout(2*time.Second))
	theirs := b.theirs.NewMutex("theirs")
	noErr(t, theirs.Lock())
	ours := mustLock(t, mutexOf(t, b.ours, "ours"))
	if !eventually(10*time.Second, func() bool { return b.holding("ours") == 3 }) {
		t.Fatal("not held everywhere")
	}
	b.del("theirs", 0)
	b.del("ours", 0)
	b.proxies[1].Blackhole(true)

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	ok, err := theirs.UnlockContext(ctx)
	b.peer(!ok && err != nil, "calls that a failure")
	if err := ours.Unlock(t.Context()); err != nil {
		t.Errorf("nobody can hold the lock, but: %v", err)
	}
	b.proxies[1].Blackhole(false)
	if !eventually(10*time.Second, func() bool { return b.holding("ours") == 0 }) {
		t.Errorf("ours is left: %q", b.values("ours"))
	}
}

// M17. A lock that has expired, and that nobody else holds, is not taken. Whoever
// reads that it is would look for a holder who does not exist.
func TestMutexM17ExtendAfterExpiry(t *testing.T) {
	b := newBout(t)
	theirs := b.theirs.NewMutex("theirs")
	noErr(t, theirs.Lock())
	ours := mustLock(t, mutexOf(t, b.ours, "ours", redlock.WithoutRenewal()))
	b.expire("theirs")
	b.expire("ours")

	ok, err := theirs.Extend()
	b.peer(!ok && err != nil && strings.Contains(err.Error(), "taken"), "says that it is taken")
	err = ours.Extend(t.Context())
	is(t, err, redlock.ErrNotHeld)
	isNot(t, err, redlock.ErrTaken)
	is(t, ours.Err(), redlock.ErrLost, redlock.ErrNotHeld)
}

// M18. A holder whose lock expired must hear of it if it extends, since another
// holder may have come and gone. redsync's option for nodes that restart takes
// the lock again instead. We give it back to such nodes only after a renewal that
// a quorum of others won.
func TestMutexM18ExtendCreates(t *testing.T) {
	b := newBout(t)
	theirs := b.theirs.NewMutex("theirs", redsync.WithSetNXOnExtend())
	noErr(t, theirs.Lock())
	ours := mustLock(t, mutexOf(t, b.ours, "ours", redlock.WithoutRenewal()))
	b.expire("theirs")
	b.expire("ours")
	between := b.theirs.NewMutex("theirs")
	noErr(t, between.Lock())
	if ok, err := between.Unlock(); !ok {
		t.Fatal(err)
	}
	mustUnlock(t, mustLock(t, mutexOf(t, b.ours, "ours")))

	ok, err := theirs.Extend()
	b.peer(ok && err == nil, "extends a lock that another held meanwhile")
	is(t, ours.Extend(t.Context()), redlock.ErrNotHeld)
	is(t, ours.Err(), redlock.ErrLost)
	if n := b.holding("ours"); n > 0 {
		t.Errorf("%d servers hold a lock that was extended after its end", n)
	}
}

// M19. One holder must not be able to release another's lock. A redsync.Mutex has
// the token of its last grant only, whoever got it. Each of our grants is a Lease
// of its own.
func TestMutexM19SharedMutex(t *testing.T) {
	b := newBout(t)
	theirs := b.theirs.NewMutex("theirs")
	m := mutexOf(t, b.ours, "ours")

	noErr(t, theirs.Lock()) // by one goroutine
	first := mustLock(t, m)
	b.expire("theirs")
	b.expire("ours")
	noErr(t, theirs.Lock()) // by another
	second := mustLock(t, m)
	if !eventually(10*time.Second, func() bool { return b.holding("ours") == 3 }) {
		t.Fatal("not held everywhere")
	}

	ok, err := theirs.Unlock() // by the first
	b.peer(ok && err == nil && b.holding("theirs") == 0, "releases another holder's lock")
	is(t, first.Unlock(t.Context()), redlock.ErrNotHeld)
	if n := b.holding("ours"); n != 3 {
		t.Errorf("the second holder has %d of 3 nodes", n)
	}
	noErr(t, second.Extend(t.Context()))
	mustUnlock(t, second)
}

// M22. Wrong options, a context that has ended, and a lock that is taken are
// different facts, and errors.Is must be able to tell them apart.
func TestMutexM22OneErrorForAll(t *testing.T) {
	b := newBout(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	err := b.theirs.NewMutex("theirs", redsync.WithTries(0)).Lock()
	b.peer(err == redsync.ErrFailed, "fails at Lock for a wrong option")
	_, err = b.ours.NewMutex("ours", redlock.WithMaxAttempts(0))
	if err == nil || !strings.Contains(err.Error(), "WithMaxAttempts(0)") {
		t.Errorf("WithMaxAttempts(0): %v", err)
	}

	err = redsync.New().NewMutex("theirs", redsync.WithTries(1)).Lock()
	b.peer(err == redsync.ErrFailed, "accepts no nodes")
	if _, err := redlock.New(nil); err == nil {
		t.Error("no nodes are enough")
	}

	err = b.theirs.NewMutex("theirs").LockContext(ended)
	b.peer(!errors.Is(err, context.Canceled), "hides that the context had ended")
	_, err = mutexOf(t, b.ours, "ours").Lock(ended)
	is(t, err, context.Canceled)
	isNot(t, err, redlock.ErrTaken, redlock.ErrNoQuorum)

	for i := range b.servers {
		for _, key := range []string{"theirs", "ours"} {
			_, err := b.servers[i].Do("SET", key, foreign)
			noErr(t, err)
		}
	}
	waiting, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = b.theirs.NewMutex("theirs").LockContext(waiting)
	b.peer(!errors.Is(err, context.DeadlineExceeded), "hides that the context ended while it waited")
	waiting, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = mutexOf(t, b.ours, "ours").Lock(waiting)
	is(t, err, context.DeadlineExceeded)
	_, err = mutexOf(t, b.ours, "ours").TryLock(t.Context())
	is(t, err, redlock.ErrTaken)
	isNot(t, err, context.DeadlineExceeded, context.Canceled)
}
