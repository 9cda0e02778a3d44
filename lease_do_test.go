// Mutex.Do: whatever fn does and whatever happens meanwhile, the lock is released
// and the caller hears of it.

package redlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
)

// do returns a function that calls Do on a mutex, and then checks that no lock is
// left and that the context of fn has ended.
func (s *sim) do() func(ctx context.Context, fn func(context.Context, *redlock.Lease) error) error {
	m := s.mutex("x")
	//nolint:contextcheck // Do releases on a context of its own
	return func(ctx context.Context, fn func(context.Context, *redlock.Lease) error) error {
		var inner context.Context
		defer func() {
			time.Sleep(4 * time.Second) // well before any TTL ends
			s.noLocks()
			is(s.t, inner.Err(), context.Canceled)
		}()
		return m.Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
			inner = ctx
			noErr(s.t, l.Err())
			noErr(s.t, ctx.Err())
			return fn(ctx, l)
		})
	}
}

var errWork = errors.New("the work failed")

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		do := s.do()
		var lease *redlock.Lease
		noErr(t, do(t.Context(), func(_ context.Context, l *redlock.Lease) error {
			lease = l
			time.Sleep(time.Minute) // renewed by the client
			if n := s.holding(l); n != 5 {
				t.Errorf("%d nodes hold the lock", n)
			}
			return nil
		}))
		ended(t, lease, redlock.ErrUnlocked)
	})
}

func TestDoFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := simulate(t, 5).do()
		err := do(t.Context(), func(context.Context, *redlock.Lease) error { return errWork })
		is(t, err, errWork)
		isNot(t, err, facts...)
	})
}

func TestDoPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := simulate(t, 5).do()
		defer func() {
			if r := recover(); r != errWork {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = do(t.Context(), func(context.Context, *redlock.Lease) error { panic(errWork) })
		t.Error("the panic is gone")
	})
}

// runtime.Goexit is what t.FailNow does.
func TestDoExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := simulate(t, 5).do()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = do(t.Context(), func(context.Context, *redlock.Lease) error { runtime.Goexit(); return nil })
			t.Error("it came back")
		}()
		<-done
	})
}

// fn's context ends with the lease, with its cause, and the loss is reported
// whether fn heeds it or not.
func TestDoLost(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 5)
			do := s.do()
			err := do(t.Context(), func(ctx context.Context, l *redlock.Lease) error {
				synctest.Wait()
				occupy("x", time.Minute, s.first(3)...)
				if heeds {
					<-ctx.Done()
					is(t, context.Cause(ctx), redlock.ErrLost, redlock.ErrTaken)
					drop("x", s.first(3)...)
					return ctx.Err()
				}
				time.Sleep(5 * time.Second)
				drop("x", s.first(3)...)
				return nil
			})
			is(t, err, redlock.ErrLost, redlock.ErrTaken)
			if errors.Is(err, context.Canceled) != heeds {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A process that is stopped in fn learns of it, if from nowhere else, from Do.
func TestDoSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.NewSkewed(clock.System, clock.Skew{})
		do := simulate(t, 5, redlock.WithClock(clk), redlock.WithoutRenewal()).do()
		err := do(t.Context(), func(ctx context.Context, _ *redlock.Lease) error {
			clk.Suspend(time.Hour)
			is(t, ctx.Err(), context.Canceled)
			is(t, context.Cause(ctx), redlock.ErrLost, redlock.ErrExpired)
			return nil
		})
		is(t, err, redlock.ErrLost, redlock.ErrExpired)

		err = do(t.Context(), func(context.Context, *redlock.Lease) error {
			clk.Suspend(time.Hour)
			return nil // and nobody has looked
		})
		is(t, err, redlock.ErrLost, redlock.ErrExpired)
	})
}

// fn's context ends with the caller's, with its cause, deadline and values. The
// lock is released on a context of its own.
func TestDoContext(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		do := simulate(t, 5).do()
		var lease *redlock.Lease
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		time.AfterFunc(time.Minute, func() { cancel(errWork) })
		var err error
		exactly(t, "do", took(func() {
			err = do(ctx, func(ctx context.Context, l *redlock.Lease) error {
				lease = l
				if v := ctx.Value(key{}); v != "value" {
					t.Errorf("value %v", v)
				}
				<-ctx.Done()
				is(t, context.Cause(ctx), errWork)
				noErr(t, l.Err())
				return ctx.Err()
			})
		}), time.Minute+4*time.Second)
		is(t, err, context.Canceled)
		isNot(t, err, facts...)
		ended(t, lease, redlock.ErrUnlocked)

		late, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		noErr(t, do(late, func(ctx context.Context, _ *redlock.Lease) error {
			got, ok := ctx.Deadline()
			if want, _ := late.Deadline(); !ok || !got.Equal(want) {
				t.Errorf("deadline %v, %t, want %v", got, ok, want)
			}
			return nil
		}))
	})
}

// fn may unlock by itself, and then has seen what came of it.
func TestDoUnlocksItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := simulate(t, 5).do()
		noErr(t, do(t.Context(), func(ctx context.Context, l *redlock.Lease) error {
			noErr(t, l.Unlock(ctx))
			is(t, ctx.Err(), context.Canceled)
			is(t, context.Cause(ctx), redlock.ErrUnlocked)
			return nil
		}))
		err := do(t.Context(), func(ctx context.Context, l *redlock.Lease) error {
			noErr(t, l.Unlock(ctx))
			return errWork
		})
		is(t, err, errWork)
		isNot(t, err, facts...)
	})
}

// If the lock cannot be released, the work was done but the caller is told.
func TestDoCannotUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		do := s.do()
		err := do(t.Context(), func(context.Context, *redlock.Lease) error {
			synctest.Wait() // for all grants
			for _, n := range s.first(3) {
				n.Blackhole(true)
			}
			time.AfterFunc(1500*time.Millisecond, s.heal)
			return errWork
		})
		is(t, err, errWork, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
		isNot(t, err, redlock.ErrLost)
	})
}

// Without the lock, fn is not called.
func TestDoWithoutLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5, redlock.WithMaxAttempts(3))
		occupy("x", 0, s.all()...)
		err := s.mutex("x").Do(t.Context(), func(context.Context, *redlock.Lease) error {
			t.Error("fn was called")
			return nil
		})
		is(t, err, redlock.ErrTaken)
		if _, ok := errors.AsType[*redlock.QuorumError](err); !ok {
			t.Errorf("%T", err)
		}
	})
}
