// What callers can learn from errors, and what they must not be led to believe.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// facts are all sentinels.
var facts = []error{
	redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrExpired, redlock.ErrLost, redlock.ErrNotHeld,
	redlock.ErrUnlocked, redlock.ErrMaxHold, redlock.ErrNodeTimeout, redlock.ErrClosed,
}

func TestErrorsDistinct(t *testing.T) {
	texts := map[string]bool{}
	for i, a := range facts {
		for j, b := range facts {
			if errors.Is(a, b) != (i == j) {
				t.Errorf("%q is %q: %t", a, b, i != j)
			}
		}
		isNot(t, a, context.Canceled, context.DeadlineExceeded)
		if a.Error() == "" || texts[a.Error()] {
			t.Errorf("text %q", a)
		}
		texts[a.Error()] = true
	}
}

// A failure is one QuorumError with a NodeError for each node that did not agree.
func TestErrorsOfVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		oom := errors.New("OOM command not allowed")
		occupy("x", 0, s.Node(0))
		s.Node(1).FailWith(oom, redlock.Rejected)
		s.Node(2).Refuse(true)
		s.Node(3).Blackhole(true)
		s.Node(4).Delay(0, time.Millisecond) // grants, but the votes of the others decide
		_, err := s.mutex("x").TryLock(t.Context())

		e, ok := errors.AsType[*redlock.QuorumError](err)
		if !ok {
			t.Fatalf("%T: %v", err, err)
		}
		if e.Op != "lock" || e.Name != "x" || e.Need != 3 || e.Granted != 0 || e.Denied != 1 || e.Failed != 2 {
			t.Errorf("%+v", e)
		}
		is(t, err, redlock.ErrNoQuorum, oom, syscall.ECONNREFUSED)
		isNot(t, err, redlock.ErrTaken, redlock.ErrNotHeld, redlock.ErrExpired, redlock.ErrNodeTimeout)
		if n, ok := errors.AsType[*redlock.NodeError](err); !ok || n.Op != "acquire" {
			t.Errorf("%+v, %t", n, ok)
		}
		for i, want := range []error{nil, oom, syscall.ECONNREFUSED} {
			found := false
			for _, err := range e.Nodes.Errors {
				n := err.(*redlock.NodeError)
				if n.Node == s.Node(i).Name() {
					found = true
					if want != nil && !errors.Is(n, want) || n.Op != "acquire" {
						t.Errorf("node %d: %+v", i, n)
					}
				}
			}
			if !found {
				t.Errorf("node %d is not among %v", i, e.Nodes.Errors)
			}
		}
		if m, ok := errors.AsType[*net.OpError](err); !ok || m.Op != "dial" {
			t.Errorf("a driver's own error is hidden: %v", m)
		}
		for _, part := range []string{"redlock: ", `lock "x"`, "0 of the 3 votes needed, 1 denied, 2 failed", `node "node-0"`, `node "node-1"`, `node "node-2"`, "OOM"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
		if strings.Contains(err.Error(), foreign) {
			t.Errorf("another holder's value is in: %v", err)
		}
	})
}

// A zero QuorumError, as tests of users make it, must not panic.
func TestErrorsZero(t *testing.T) {
	for _, e := range []*redlock.QuorumError{{}, {Nodes: new(multierror.Error)}} {
		if e.Error() == "" {
			t.Error("no text")
		}
		isNot(t, e, redlock.ErrTaken)
	}
	n := &redlock.NodeError{Node: "a", Op: "acquire", Err: io.EOF}
	is(t, n, io.EOF)
}

// One node that holds another token does not make the lock taken: errors.Is must
// not find ErrTaken in what a minority said.
func TestErrorsMinorityTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		occupy("x", 0, s.Node(0), s.Node(1))
		for _, n := range s.all()[2:] {
			n.Refuse(true)
			n.Delay(0, 0)
		}
		_, err := s.mutex("x").TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		isNot(t, err, redlock.ErrTaken)

		s.heal()
		drop("x", s.all()...)
		l := s.lock("x", redlock.WithoutRenewal())
		synctest.Wait()
		occupy("x", 0, s.Node(0), s.Node(1))
		for _, n := range s.all()[2:] {
			n.Refuse(true)
		}
		err = l.Extend(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		isNot(t, err, redlock.ErrTaken, redlock.ErrNotHeld, redlock.ErrLost)
		err = l.Unlock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		isNot(t, err, redlock.ErrTaken, redlock.ErrNotHeld)
	})
}

// Drivers and dialers report their own deadlines, and even the end of contexts
// that the library made, as context errors. A caller asks errors.Is whether its
// own context ended, so they must not be found.
func TestErrorsMaskContexts(t *testing.T) {
	_, dialTimeout := (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", "127.0.0.1:1")
	if !errors.Is(dialTimeout, context.DeadlineExceeded) {
		t.Logf("a dialer's timeout is no longer a context error: %v", dialTimeout)
	}
	both := errors.Join(syscall.ECONNREFUSED, context.DeadlineExceeded)
	for _, c := range []struct {
		name    string
		err     error
		timeout bool
		keeps   error
	}{
		{"dial timeout", dialTimeout, true, dialTimeout},
		{"driver's deadline", fmt.Errorf("pool: %w", context.DeadlineExceeded), true, nil},
		{"driver's cancellation", fmt.Errorf("pool: %w", context.Canceled), false, nil},
		{"context.DeadlineExceeded itself", context.DeadlineExceeded, true, nil},
		{"context.Canceled itself", context.Canceled, false, nil},
		{"refused in the end", both, true, syscall.ECONNREFUSED},
		{"socket timeout", &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, true, os.ErrDeadlineExceeded},
		{"refused", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, false, syscall.ECONNREFUSED},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 1, redlock.WithoutRenewal())
				check := func(err error) {
					t.Helper()
					is(t, err, redlock.ErrNoQuorum)
					isNot(t, err, context.Canceled, context.DeadlineExceeded)
					if errors.Is(err, redlock.ErrNodeTimeout) != c.timeout {
						t.Errorf("a node timeout: %t, want %t: %v", !c.timeout, c.timeout, err)
					}
					if c.keeps != nil {
						is(t, err, c.keeps)
					}
					if want, ok := errors.AsType[*net.OpError](c.err); ok {
						if got, _ := errors.AsType[*net.OpError](err); got != want {
							t.Errorf("the driver's error is %v, want %v", got, want)
						}
					}
					if !strings.Contains(err.Error(), strings.ReplaceAll(c.err.Error(), "\n", "; ")) && !strings.Contains(err.Error(), c.err.Error()) {
						t.Errorf("the driver's text %q is not in: %v", c.err, err)
					}
				}
				l := s.lock("y")
				s.Node(0).FailWith(c.err, redlock.Unsent)
				_, err := s.mutex("x").TryLock(t.Context())
				check(err)
				check(l.Extend(t.Context()))
				check(l.Unlock(t.Context()))
			})
		})
	}
}

// The caller's own context is found, with its cause, and with what the nodes had
// said until then.
func TestErrorsOfCaller(t *testing.T) {
	cause := errors.New("shutting down")
	for _, when := range []string{"before", "meanwhile", "while waiting"} {
		for _, c := range []struct {
			name string
			end  func(parent context.Context) (context.Context, context.CancelFunc) // in a minute
			want []error
			not  error
		}{
			{"cancelled", func(parent context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(parent)
				time.AfterFunc(time.Minute, cancel)
				return ctx, cancel
			}, []error{context.Canceled}, context.DeadlineExceeded},
			{"with a cause", func(parent context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(parent)
				time.AfterFunc(time.Minute, func() { cancel(cause) })
				return ctx, func() { cancel(nil) }
			}, []error{context.Canceled, cause}, context.DeadlineExceeded},
			{"too late", func(parent context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(parent, time.Minute)
			}, []error{context.DeadlineExceeded}, context.Canceled},
			{"too late with a cause", func(parent context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(parent, time.Minute, cause)
			}, []error{context.DeadlineExceeded, cause}, context.Canceled},
		} {
			t.Run(c.name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := simulate(t, 3, redlock.WithTTL(time.Hour), redlock.WithNodeTimeout(2*time.Minute), redlock.WithoutRenewal())
					l := s.lock("held")
					occupy("x", 0, s.all()...)
					ending := func() context.Context {
						ctx, cancel := c.end(t.Context())
						t.Cleanup(cancel)
						return ctx
					}
					ctx := ending()
					check := func(op string, err error) {
						t.Helper()
						is(t, err, c.want...)
						isNot(t, err, c.not, redlock.ErrLost, redlock.ErrExpired)
						if errors.Is(err, redlock.ErrTaken) != (when == "while waiting") {
							t.Errorf("taken: %v", err)
						}
						if !strings.HasPrefix(err.Error(), "redlock: "+op) || strings.Contains(err.Error(), "\n") {
							t.Errorf("text %q", err)
						}
					}
					switch when {
					case "before":
						time.Sleep(time.Minute)
						synctest.Wait()
						s.Node(0).ResetCalls()
						_, err := s.mutex("x").Lock(ctx)
						check("lock", err)
						_, err = s.mutex("x").TryLock(ctx)
						check("lock", err)
						check("extend", l.Extend(ctx))
						isNot(t, err, redlock.ErrNoQuorum) // nobody was asked
						if n := len(s.Node(0).Calls()); n > 0 {
							t.Errorf("%d calls for a context that had ended", n)
						}
						noErr(t, l.Err())
					case "meanwhile":
						for _, n := range s.all() {
							n.Blackhole(true)
						}
						done := make(chan error)
						go func() { _, err := s.mutex("x").Lock(ctx); done <- err }()
						go func() { _, err := s.mutex("x").TryLock(ctx); done <- err }()
						exactly(t, "wait", took(func() {
							check("lock", <-done)
							check("lock", <-done)
						}), time.Minute)
						s.heal()
						extend := ending()
						s.Node(0).Blackhole(true)
						s.Node(1).Blackhole(true)
						exactly(t, "wait", took(func() { check("extend", l.Extend(extend)) }), time.Minute)
						noErr(t, l.Err())
						unlock := ending()
						exactly(t, "wait", took(func() { check("unlock", l.Unlock(unlock)) }), time.Minute)
					case "while waiting":
						exactly(t, "wait", took(func() {
							_, err := s.mutex("x").Lock(ctx)
							check("lock", err)
						}), time.Minute)
					}
				})
			})
		}
	}
}

// A message stays on one line and of a readable length, whatever the name.
func TestErrorsReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 1, redlock.WithoutRenewal())
		for _, name := range []string{strings.Repeat("long", 10_000), "two\nlines", "\x00\xff", strings.Repeat("é", 1000)} {
			l := s.lock(name)
			_, taken := s.mutex(name).TryLock(t.Context())
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, left := s.mutex(name).Lock(ended)
			extend := l.Extend(ended)
			drop(name, s.Node(0))
			lost := l.Extend(t.Context())
			for _, err := range []error{taken, left, extend, lost, l.Err(), l.Unlock(t.Context()), l.Unlock(t.Context()), s.mutex(name).Do(t.Context(), nil)} {
				if text := err.Error(); !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x00") || len(text) > 1000 || !strings.HasPrefix(text, "redlock: ") {
					t.Errorf("%d bytes: %.1000q", len(text), text)
				}
			}
		}
	})
}

// What the nodes or the caller's cause say may have several lines, as errors that
// were joined do. The message still has one, as a log line should.
func TestErrorsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 1)
		s.Node(0).FailWith(errors.Join(io.EOF, io.ErrUnexpectedEOF), redlock.Rejected, redlocktest.Acquire)
		_, node := s.mutex("x").TryLock(t.Context())
		s.heal()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.Join(io.EOF, io.ErrUnexpectedEOF))
		_, caller := s.mutex("x").Lock(ctx)
		both := s.mutex("x").Do(t.Context(), func(context.Context, *redlock.Lease) error {
			synctest.Wait()
			drop("x", s.Node(0))
			return errors.Join(io.EOF, io.ErrUnexpectedEOF)
		})
		is(t, both, redlock.ErrNotHeld)
		for _, err := range []error{node, caller, both} {
			is(t, err, io.EOF, io.ErrUnexpectedEOF)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		}
	})
}
