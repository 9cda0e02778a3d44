// The same without scripts, on servers that run none.

package redlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The commands here do what the scripts do for a lock without a counter, but for
// the tombstone: only a script can ask for one and set the lock in one step. So a
// SET that arrives after its release leaves a key, which goes with its TTL.

// plainAcquire sets the lock if it is absent, and reads it in the same trip: the
// value may be the claim's own, of a SET whose reply was lost.
func plainAcquire(ctx context.Context, client redis.UniversalClient, c *Claim) (Reply, error) {
	set := newOnce(ctx, "set", c.Lock, c.Value, "px", c.TTL.Milliseconds(), "nx")
	get, left := newOnce(ctx, "get", c.Lock), newOnce(ctx, "pttl", c.Lock)
	sendAll(ctx, client.Pipeline(), set, get, left)
	switch err := set.Err(); {
	case err == nil:
		return Reply{Verdict: Granted}, nil
	case !errors.Is(err, redis.Nil):
		return failed(err, set.written.Load())
	}
	s, err := stored(get, left)
	if err != nil {
		return failed(err, get.written.Load())
	}
	return whose(c, s), nil
}

// whose tells what a lock that holds s is to a claim.
func whose(c *Claim, s LockState) Reply {
	switch {
	case !s.Held:
		return Reply{Verdict: Absent}
	case s.Value == c.Value:
		return Reply{Verdict: Granted}
	}
	return Reply{Verdict: Taken, Remaining: s.Remaining}
}

// plainExtend renews the lock if it holds the claim's value.
func plainExtend(ctx context.Context, client redis.UniversalClient, c *Claim) (Reply, error) {
	return change(ctx, client, c, func(left time.Duration) []any {
		if left >= c.TTL {
			return nil
		}
		return []any{"pexpire", c.Lock, c.TTL.Milliseconds()}
	}, Granted)
}

// plainRelease deletes the lock if it holds the claim's value.
func plainRelease(ctx context.Context, client redis.UniversalClient, c *Claim) (Reply, error) {
	return change(ctx, client, c, func(time.Duration) []any { return []any{"del", c.Lock} }, Released)
}

// change runs a command, if there is one, on a lock that holds the claim's value, in
// a transaction that does nothing once somebody else has touched the lock. The
// verdict is done if the command found the key.
func change(ctx context.Context, client redis.UniversalClient, c *Claim, command func(left time.Duration) []any, done Verdict) (reply Reply, err error) {
	watchErr := client.Watch(ctx, func(tx *redis.Tx) error {
		get, left := newOnce(ctx, "get", c.Lock), newOnce(ctx, "pttl", c.Lock)
		sendAll(ctx, tx.Pipeline(), get, left)
		s, e := stored(get, left)
		if e != nil {
			reply, err = failed(e, get.written.Load())
			return nil
		}
		reply = whose(c, s)
		args := command(s.Remaining)
		if reply.Verdict != Granted || args == nil {
			return nil
		}
		write := newOnce(ctx, args...)
		sendAll(ctx, tx.TxPipeline(), write)
		switch n, e := write.Int64(); {
		case e != nil:
			reply, err = failed(e, write.written.Load())
		case n == 0:
			reply.Verdict = Absent
		default:
			reply.Verdict = done
		}
		return nil
	}, c.Lock)
	if watchErr != nil && err == nil { // of the WATCH itself: nothing was changed
		return failed(watchErr, false)
	}
	return reply, err
}

// plainExtendAll renews the claims that indexes name, each in its own transaction
// and all at once.
func plainExtendAll(ctx context.Context, client redis.UniversalClient, claims []*Claim, indexes []int, replies []Reply, errs []error) {
	var wg sync.WaitGroup
	for _, i := range indexes {
		wg.Go(func() { replies[i], errs[i] = plainExtend(ctx, client, claims[i]) })
	}
	wg.Wait()
}
