// Hooks: the context that goes with a call, and what events must not tell.

package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestTraceContext: the values that LockStart gives a call go with it everywhere, and
// with the lease.
func TestTraceContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		c := redlocktest.New(3)
		nodes := c.Nodes()
		asked := &valueNode{Node: nodes[0], values: make(map[any]bool)}
		nodes[0] = asked
		client, err := redlock.New(nodes, redlock.WithTrace(r.trace()))
		noErr(t, err)
		m := mutexOf(t, client, "x")
		type own struct{}
		noErr(t, m.Do(context.WithValue(t.Context(), own{}, 1), func(ctx context.Context, l *redlock.Lease) error {
			for _, ctx := range []context.Context{ctx, l.Context()} {
				if ctx.Value(callKey{}) != "x" || ctx.Value(own{}) != 1 {
					t.Error("the lease has other values")
				}
			}
			time.Sleep(5 * time.Second)
			return nil
		}))
		noErr(t, client.Close())
		if len(asked.values) != 1 || !asked.values["x"] {
			t.Errorf("the node was asked with %v", asked.values)
		}
		if e := one[redlock.LockStart](t, &r); e.Name != "x" || e.MaxAttempts != 0 {
			t.Errorf("%+v", e)
		}
		for _, hook := range []string{"AttemptStart", "AttemptDone", "LockDone", "NodeDone", "Renewal", "Unlocked"} {
			if len(r.all(hook)) == 0 {
				t.Errorf("there was no %s", hook)
			}
			for _, e := range r.all(hook) {
				ctx := reflect.ValueOf(e).FieldByName("Context").Interface().(context.Context)
				if ctx.Value(callKey{}) != "x" || ctx.Done() != nil {
					t.Errorf("%s: %v", hook, ctx)
				}
			}
		}
	})
}

// A valueNode notes the values with which it is asked to acquire.
type valueNode struct {
	redlock.Node
	mu     sync.Mutex
	values map[any]bool
}

func (n *valueNode) Acquire(ctx context.Context, c *redlock.Claim) (redlock.Reply, error) {
	n.mu.Lock()
	n.values[ctx.Value(callKey{})] = true
	n.mu.Unlock()
	return n.Node.Acquire(ctx, c)
}

// TestTraceContextEnds: whatever context LockStart returns, the call ends when that of
// the caller does, with its cause, and not before.
func TestTraceContextEnds(t *testing.T) {
	cause := errors.New("no longer wanted")
	for name, hook := range map[string]func(context.Context) context.Context{
		"nil":      func(context.Context) context.Context { return nil },
		"the same": func(ctx context.Context) context.Context { return ctx },
		"a value":  func(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, 1) },
		"detached": context.WithoutCancel,
		"another":  func(context.Context) context.Context { return context.Background() },
		"its own cause": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("the hook's"))
			return ctx
		},
		"ended": func(context.Context) context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3, redlock.WithTrace(&redlock.Trace{
					LockStart: func(ctx context.Context, _ redlock.LockStart) context.Context { return hook(ctx) },
				}))
				occupy("x", 0, s.all()...)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				bound := time.AfterFunc(time.Minute, func() { drop("x", s.all()...) }) // one who waits on waits no longer
				exactly(t, "lock", took(func() {
					_, err := s.mutex("x").Lock(ctx)
					is(t, err, cause, context.Canceled, redlock.ErrTaken)
				}), time.Second)
				bound.Stop()
				l := mustLock(t, s.mutex("y")) // a context that has ended does not keep it
				noErr(t, l.Context().Err())
				noErr(t, l.Unlock(t.Context()))
			})
		})
	}
}

// TestTraceNoTokens: no owner token is in any event, log line or figure, whatever
// happens in the life of a client.
func TestTraceNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		var mu sync.Mutex
		var log bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s := distant(t, 3,
			redlock.WithTTL(2*time.Second), redlock.WithLogger(logger),
			redlock.WithTrace(redlock.JoinTraces(r.trace(), redlock.LogTrace(logger))))
		tokens := make(map[string]bool)
		for _, n := range s.all() {
			n.Observe(func(c redlocktest.Call) {
				mu.Lock()
				defer mu.Unlock()
				if token, _, ok := strings.Cut(c.Value, "."); ok && c.Op == redlocktest.Acquire {
					tokens[token] = true
				}
			})
		}
		m := s.mutex("x")
		l := mustLock(t, m) // and renewals, and one who waits and is called
		w := await(t.Context(), m)
		time.Sleep(3 * time.Second)
		_, other := s.another(redlock.WithTTL(2 * time.Second))
		foreign := await(t.Context(), other)
		_, err := m.TryLock(t.Context())
		is(t, err, redlock.ErrTaken)
		time.Sleep(time.Second)
		noErr(t, l.Unlock(t.Context()))
		<-w.done
		noErr(t, w.lease.Unlock(t.Context()))
		<-foreign.done
		w = await(t.Context(), m)
		time.Sleep(time.Second)
		noErr(t, foreign.lease.Unlock(t.Context()))
		<-w.done // danger, and a loss, and what cannot be cleaned up
		for _, n := range s.all() {
			n.Blackhole(true)
		}
		time.Sleep(4 * time.Second)
		is(t, w.lease.Unlock(t.Context()), redlock.ErrLost)
		s.heal()
		l = mustLock(t, m)
		w = await(t.Context(), m)
		time.Sleep(time.Second)
		for _, n := range s.all() {
			n.Restart(false)
		}
		<-w.done
		time.Sleep(2 * time.Second)
		is(t, l.Err(), redlock.ErrLost)
		noErr(t, w.lease.Unlock(t.Context()))
		for _, n := range s.all() {
			n.FailWith(errors.New("NOPERM"), redlock.Forbidden)
		}
		_, err = m.Lock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		s.heal()
		time.Sleep(10 * time.Second)

		text := new(strings.Builder)
		for _, hook := range hooks() {
			if len(r.all(hook)) == 0 {
				t.Errorf("there was no %s", hook)
			}
			for _, e := range r.all(hook) {
				fmt.Fprintf(text, "%+v\n", e)
				spell(text, reflect.ValueOf(e), 0)
			}
		}
		fmt.Fprintf(text, "%+v\n", s.client.Stats())
		in, err := s.client.Inspect(t.Context(), "x")
		noErr(t, err)
		fmt.Fprintf(text, "%v\n", in)
		mu.Lock()
		defer mu.Unlock()
		text.WriteString(log.String())
		if len(tokens) < 6 || !tokens[l.Token()] || !tokens[w.lease.Token()] || text.Len() < 20_000 || !strings.Contains(log.String(), "lease lost") {
			t.Errorf("%d tokens, %d bytes: that was no test", len(tokens), text.Len())
		}
		for token := range tokens {
			if i := strings.Index(text.String(), token); i >= 0 {
				t.Errorf("the token %s is told: %s", token, text.String()[max(i-300, 0):i+50])
			}
		}
	})
}

// spell writes all strings that can be reached from v, but for those of contexts, which
// are the caller's.
func spell(b *strings.Builder, v reflect.Value, depth int) {
	if depth > 20 || v.IsValid() && v.Type() == reflect.TypeFor[context.Context]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		b.WriteString(v.String() + "\n")
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			spell(b, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			spell(b, field, depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spell(b, v.Index(i), depth+1)
		}
	default:
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

// TestJoinTraces: each hook of each trace is called, in order, with the context of the
// one before, and where there is none there is no hook.
func TestJoinTraces(t *testing.T) {
	var called []string
	note := func(name string) *redlock.Trace {
		return everyHook(func(hook string, _ any) { called = append(called, name+hook) })
	}
	joined := reflect.ValueOf(redlock.JoinTraces(note("a."), nil, &redlock.Trace{}, note("b."))).Elem()
	none := reflect.ValueOf(redlock.JoinTraces(nil, &redlock.Trace{})).Elem()
	alone := reflect.ValueOf(redlock.JoinTraces(note("c."))).Elem()
	for _, hook := range hooks() {
		if !none.FieldByName(hook).IsNil() {
			t.Errorf("%s: a hook of nobody", hook)
		}
		for _, v := range []reflect.Value{joined, alone} {
			f := v.FieldByName(hook)
			var args []reflect.Value
			for in := range f.Type().Ins() {
				args = append(args, reflect.New(in).Elem())
			}
			if hook == "LockStart" {
				args[0] = reflect.ValueOf(t.Context())
			}
			f.Call(args)
		}
		if want := []string{"a." + hook, "b." + hook, "c." + hook}; !slices.Equal(called, want) {
			t.Errorf("%v were called, want %v", called, want)
		}
		called = nil
	}

	type key struct{}
	add := func(s string) *redlock.Trace {
		return &redlock.Trace{LockStart: func(ctx context.Context, _ redlock.LockStart) context.Context {
			before, _ := ctx.Value(key{}).(string)
			return context.WithValue(ctx, key{}, before+s)
		}}
	}
	quiet := &redlock.Trace{LockStart: func(context.Context, redlock.LockStart) context.Context { return nil }}
	ctx := redlock.JoinTraces(add("a"), quiet, add("b")).LockStart(t.Context(), redlock.LockStart{})
	if ctx.Value(key{}) != "ab" {
		t.Errorf("the context has %v", ctx.Value(key{}))
	}
}
