// Whose end ends what: the contexts given to Lock and Do, fn's, and the lease.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

type doKey struct{}

// TestRenewLockContext: what becomes of Lock's context later is nothing to the
// lease, which goes on being renewed and keeps the context's values.
func TestRenewLockContext(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) context.Context{
		"cancelled": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errors.New("the caller is gone")) })
			return ctx
		},
		"timed out": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			return ctx
		},
		"cancelled at once": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(5*time.Millisecond, cancel) // with the third node still on its way
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var book logbook
				holder := join(t, redlocktest.New(3), time.Millisecond, time.Millisecond, book.trace())
				holder.lines[2].back = 20 * time.Millisecond
				ctx := end(context.WithValue(t.Context(), doKey{}, "value"))
				lease, err := mutexOf(t, holder.client, "a").Lock(ctx)
				noErr(t, err)
				time.Sleep(time.Minute)
				if ctx.Err() == nil {
					t.Fatal("the caller's context has not ended")
				}
				noErr(t, lease.Err())
				noErr(t, lease.Context().Err())
				if lease.Context().Value(doKey{}) != "value" {
					t.Error("the lease's context lacks the values of Lock's")
				}
				if _, ok := lease.Context().Deadline(); ok {
					t.Error("the lease's context has a deadline, although it is renewed")
				}
				if n := book.failed(); n > 0 {
					t.Errorf("%d renewals failed", n)
				}
				mustUnlock(t, lease)
				is(t, context.Cause(lease.Context()), redlock.ErrUnlocked)
			})
		})
	}
}

// TestRenewDoOutcomes: the ways in which fn and its lease can end.
func TestRenewDoOutcomes(t *testing.T) {
	errWork := errors.New("work failed")
	lose := func(p *party) { // and wait until the lease knows
		for _, l := range p.lines {
			l.FlushAll()
		}
		time.Sleep(10 * time.Second)
	}
	for _, c := range []struct {
		name      string
		fn        func(ctx context.Context, p *party, l *redlock.Lease) error
		want, not []error
	}{
		{
			"ignores its context and outlives the loss",
			func(_ context.Context, p *party, _ *redlock.Lease) error { lose(p); return nil },
			[]error{redlock.ErrLost, redlock.ErrNotHeld},
			[]error{redlock.ErrUnlocked},
		},
		{
			"outlives the deadline in a blackhole",
			func(_ context.Context, p *party, _ *redlock.Lease) error {
				p.set(lineHanging, 3)
				time.Sleep(time.Minute)
				return nil
			},
			[]error{redlock.ErrLost, redlock.ErrExpired, redlock.ErrNoQuorum},
			[]error{redlock.ErrUnlocked},
		},
		{
			"fails, and has lost the lease",
			func(_ context.Context, p *party, _ *redlock.Lease) error { lose(p); return errWork },
			[]error{errWork, redlock.ErrLost},
			nil,
		},
		{
			"returns the cause of its context",
			func(ctx context.Context, p *party, l *redlock.Lease) error {
				lose(p)
				<-ctx.Done()
				if context.Cause(ctx) != l.Err() {
					return fmt.Errorf("the cause is %w, not the lease's", context.Cause(ctx))
				}
				return context.Cause(ctx)
			},
			[]error{redlock.ErrLost, redlock.ErrNotHeld},
			[]error{context.Canceled},
		},
		{
			"fails, holding the lease",
			func(context.Context, *party, *redlock.Lease) error { return errWork },
			[]error{errWork},
			[]error{redlock.ErrLost, redlock.ErrNotHeld},
		},
		{
			"unlocks by itself",
			func(ctx context.Context, _ *party, l *redlock.Lease) error {
				err := l.Unlock(ctx)
				if !errors.Is(context.Cause(ctx), redlock.ErrUnlocked) || ctx.Err() == nil {
					return fmt.Errorf("the context after Unlock: %w", context.Cause(ctx))
				}
				return err
			},
			nil, nil,
		},
		{
			"outlives ten TTLs",
			func(ctx context.Context, _ *party, l *redlock.Lease) error {
				time.Sleep(100 * time.Second)
				return errors.Join(ctx.Err(), l.Err())
			},
			nil, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := redlocktest.New(3)
				p := join(t, cluster, 0, 0)
				var lease *redlock.Lease
				err := mutexOf(t, p.client, "a").Do(t.Context(), func(ctx context.Context, l *redlock.Lease) error {
					lease = l
					return c.fn(ctx, p, l)
				})
				if len(c.want) == 0 {
					noErr(t, err)
				}
				is(t, err, c.want...)
				isNot(t, err, c.not...)
				if lease.Err() == nil {
					t.Error("the lease outlives Do")
				}
				p.set(lineIntact, 3)
				time.Sleep(20 * time.Second)
				for i := range 3 {
					if has(cluster.Node(i), i, lease) {
						t.Errorf("node %d still has the key", i)
					}
				}
			})
		})
	}
}

// TestRenewDoCaller: fn's context ends with the caller's, for the same cause, and
// the lease with fn.
func TestRenewDoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := join(t, redlocktest.New(3), 0, 0)
		errStop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errStop) })
		err := mutexOf(t, p.client, "a").Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
			exactly(t, "fn's context", took(func() { <-ctx.Done() }), time.Minute)
			is(t, context.Cause(ctx), errStop)
			noErr(t, l.Err())
			return nil
		})
		noErr(t, err) // fn succeeded, and the lock was held throughout
		synctest.Wait()
	})
}

// TestRenewDoPanic: fn panics, or ends its goroutine. The lock is released, and
// the panic goes on.
func TestRenewDoPanic(t *testing.T) {
	for name, leave := range map[string]func(){
		"panic":  func() { panic("of fn") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := redlocktest.New(3)
				p := join(t, c, 0, 0)
				m := mutexOf(t, p.client, "a")
				var lease *redlock.Lease
				var panicked any
				returned := false
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { panicked = recover() }()
					_ = m.Do(t.Context(), func(_ context.Context, l *redlock.Lease) error {
						lease = l
						time.Sleep(time.Minute)
						leave()
						return nil
					})
					returned = true
				}()
				<-done
				if returned {
					t.Error("Do returned")
				}
				if name == "panic" && panicked != "of fn" {
					t.Errorf("the panic became %v", panicked)
				}
				is(t, lease.Err(), redlock.ErrUnlocked)
				isNot(t, lease.Err(), redlock.ErrLost)
				synctest.Wait()
				for i := range 3 {
					if keys := locksOn(c.Node(i)); len(keys) > 0 {
						t.Errorf("node %d still has %q", i, keys)
					}
				}
			})
		})
	}
}
