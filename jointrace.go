// Several traces at once.

package redlock

import "context"

// JoinTraces returns a trace that calls the hooks of all traces, in their order. A
// hook that none of them has is nil, and costs nothing. Each LockStart gets the
// context of the one before it. Traces that are nil are left out.
func JoinTraces(traces ...*Trace) *Trace {
	return &Trace{
		LockStart:      joinStarts(traces),
		LockDone:       joinHooks(traces, func(t *Trace) func(LockDone) { return t.LockDone }),
		AttemptStart:   joinHooks(traces, func(t *Trace) func(AttemptStart) { return t.AttemptStart }),
		AttemptDone:    joinHooks(traces, func(t *Trace) func(AttemptDone) { return t.AttemptDone }),
		NodeDone:       joinHooks(traces, func(t *Trace) func(NodeDone) { return t.NodeDone }),
		Wait:           joinHooks(traces, func(t *Trace) func(Wait) { return t.Wait }),
		Called:         joinHooks(traces, func(t *Trace) func(Called) { return t.Called }),
		Deaf:           joinHooks(traces, func(t *Trace) func(Deaf) { return t.Deaf }),
		Renewal:        joinHooks(traces, func(t *Trace) func(Renewal) { return t.Renewal }),
		Danger:         joinHooks(traces, func(t *Trace) func(Danger) { return t.Danger }),
		Lost:           joinHooks(traces, func(t *Trace) func(Lost) { return t.Lost }),
		Unlocked:       joinHooks(traces, func(t *Trace) func(Unlocked) { return t.Unlocked }),
		CleanupDropped: joinHooks(traces, func(t *Trace) func(CleanupDropped) { return t.CleanupDropped }),
	}
}

// joinHooks returns a hook that calls those that there are.
func joinHooks[E any](traces []*Trace, hook func(*Trace) func(E)) func(E) {
	var hooks []func(E)
	for _, t := range traces {
		if t == nil {
			continue
		}
		if f := hook(t); f != nil {
			hooks = append(hooks, f)
		}
	}
	switch len(hooks) {
	case 0:
		return nil
	case 1:
		return hooks[0]
	}
	return func(e E) {
		for _, f := range hooks {
			f(e)
		}
	}
}

func joinStarts(traces []*Trace) func(context.Context, LockStart) context.Context {
	var hooks []func(context.Context, LockStart) context.Context
	for _, t := range traces {
		if t != nil && t.LockStart != nil {
			hooks = append(hooks, t.LockStart)
		}
	}
	if len(hooks) == 0 {
		return nil
	}
	return func(ctx context.Context, s LockStart) context.Context {
		for _, f := range hooks {
			if values := f(ctx, s); values != nil {
				ctx = values
			}
		}
		return ctx
	}
}
