// What tests of hooks share.

package redlock_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/quorumlock/redlock"
)

// everyHook returns a trace of which each hook gives f its name and the event.
// LockStart gives the context that the call has a value.
func everyHook(f func(hook string, event any)) *redlock.Trace {
	trace := new(redlock.Trace)
	v := reflect.ValueOf(trace).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Name == "LockStart" {
			continue
		}
		v.Field(i).Set(reflect.MakeFunc(field.Type, func(args []reflect.Value) []reflect.Value {
			f(field.Name, args[0].Interface())
			return nil
		}))
	}
	trace.LockStart = func(ctx context.Context, s redlock.LockStart) context.Context {
		f("LockStart", s)
		return context.WithValue(ctx, callKey{}, s.Name)
	}
	return trace
}

// callKey is the key under which everyHook leaves the name of the mutex.
type callKey struct{}

// hooks returns the names of all hooks.
func hooks() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[redlock.Trace]()) {
		if f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}

// A recorder keeps all events, by hook.
type recorder struct {
	mu     sync.Mutex
	events map[string][]any
}

func (r *recorder) trace() *redlock.Trace {
	r.events = make(map[string][]any)
	return everyHook(func(hook string, event any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events[hook] = append(r.events[hook], event)
	})
}

// all returns the events of a hook until now.
func (r *recorder) all(hook string) []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events[hook])
}

// of returns the events of one kind until now.
func of[E any](r *recorder) (all []E) {
	for _, e := range r.all(hookOf[E]()) {
		all = append(all, e.(E))
	}
	return all
}

// hookOf returns the name of the hook for events of a kind.
func hookOf[E any]() string { return reflect.TypeFor[E]().Name() }

// one returns the only event of its kind.
func one[E any](t testing.TB, r *recorder) (e E) {
	t.Helper()
	all := of[E](r)
	if len(all) != 1 {
		t.Fatalf("%d events of %s, want 1: %+v", len(all), hookOf[E](), all)
	}
	return all[0]
}
