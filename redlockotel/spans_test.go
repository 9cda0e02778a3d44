// The spans: which are there, under whom, and with what outcome.

package redlockotel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/redlockotel"
)

// named returns the spans of a name, in the order in which they ended.
func (w *watch) named(name string) (found []tracetest.SpanStub) {
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// one returns the only span of a name.
func (w *watch) one(name string) tracetest.SpanStub {
	w.t.Helper()
	all := w.named(name)
	if len(all) != 1 {
		w.t.Fatalf("%d spans %s, want 1", len(all), name)
	}
	return all[0]
}

func value(attributes []attribute.KeyValue, key attribute.Key) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// links reports that s has one link, to another's span.
func links(s, to tracetest.SpanStub) bool {
	return len(s.Links) == 1 && s.Links[0].SpanContext.Equal(to.SpanContext)
}

func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		p := w.join(distant(), nil)
		tracer := w.tracers.Tracer("test")
		ctx, caller := tracer.Start(t.Context(), "caller")
		lease, err := p.mutex("a").Lock(ctx)
		noErr(t, err)
		_, work := tracer.Start(lease.Context(), "work")
		time.Sleep(1500 * time.Millisecond)
		work.End()
		noErr(t, lease.Unlock(context.Background()))
		caller.End()

		root := w.one("caller").SpanContext
		lock := w.one("redlock.lock")
		if lock.Parent.SpanID() != root.SpanID() || value(lock.Attributes, "redlock.name") != "a" ||
			lock.Status.Code != codes.Unset || lock.EndTime.Sub(lock.StartTime) != 2*way {
			t.Errorf("%+v", lock)
		}
		if got := w.one("work").Parent.SpanID(); got != root.SpanID() {
			t.Error("what the holder does is not a child of the caller's span")
		}
		attempt := w.one("redlock.attempt")
		if attempt.Parent.SpanID() != lock.SpanContext.SpanID() || attempt.EndTime.Sub(attempt.StartTime) != 2*way {
			t.Errorf("%+v", attempt)
		}
		if len(attempt.Events) != 3 { // decided by the third
			t.Errorf("%d events of an attempt, want 3", len(attempt.Events))
		}
		for _, e := range attempt.Events {
			if e.Name != "redlock.node" || value(e.Attributes, "redlock.verdict") != "granted" || value(e.Attributes, "redlock.seconds") != "0.01" {
				t.Errorf("%+v", e)
			}
		}
		renew := w.one("redlock.renew")
		if renew.Parent.IsValid() || renew.SpanContext.TraceID() == root.TraceID() || !links(renew, lock) ||
			renew.EndTime.Sub(renew.StartTime) != 2*way {
			t.Errorf("%+v", renew)
		}
		unlock := w.one("redlock.unlock")
		if unlock.Parent.SpanID() != root.SpanID() || !links(unlock, lock) || unlock.EndTime.Sub(unlock.StartTime) != 2*way {
			t.Errorf("%+v", unlock)
		}
	})
}

// TestSpansFailed: what failed says so, and ends.
func TestSpansFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		p := w.join(distant(), nil, redlock.WithMaxAttempts(3))
		lease := p.lock("a")
		p.most(func(n *redlocktest.Node) { n.Refuse(true) })
		<-lease.Done()
		w.spans.Reset()

		_, err := p.mutex("a").Lock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		lock := w.one("redlock.lock")
		if lock.Status.Code != codes.Error || lock.Status.Description != err.Error() || value(lock.Attributes, "error.type") != "no_quorum" {
			t.Errorf("%+v", lock)
		}
		waits := 0
		for _, e := range lock.Events {
			if e.Name == "redlock.wait" {
				waits++
			}
		}
		attempts := w.named("redlock.attempt")
		if len(attempts) != 3 || waits != 2 || value(lock.Attributes, "redlock.attempt") != "3" {
			t.Errorf("%d attempts and %d waits, want 3 and 2", len(attempts), waits)
		}
		for i, a := range attempts {
			if a.Status.Code != codes.Error || value(a.Attributes, "error.type") != "no_quorum" ||
				value(a.Attributes, "redlock.attempt") != string(rune('1'+i)) {
				t.Errorf("%+v", a)
			}
			if !slices.ContainsFunc(a.Events, func(e sdktrace.Event) bool {
				return value(e.Attributes, "error.type") == "unsent" && value(e.Attributes, "redlock.node") == "node-1"
			}) {
				t.Errorf("no event of a node that refuses: %+v", a.Events)
			}
		}

		w.spans.Reset()
		is(t, lease.Unlock(t.Context()), redlock.ErrLost)
		if unlock := w.one("redlock.unlock"); unlock.Status.Code != codes.Error || value(unlock.Attributes, "error.type") != "lost" {
			t.Errorf("%+v", unlock)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		p.Node(0).Refuse(false)
		p.Node(1).Refuse(false)
		p.Node(2).Refuse(false)
		w.spans.Reset()
		_, err = p.mutex("b").Lock(ctx)
		is(t, err, context.DeadlineExceeded)
		for _, name := range []string{"redlock.lock", "redlock.attempt"} {
			if s := w.one(name); s.Status.Code != codes.Error || value(s.Attributes, "error.type") != "canceled" {
				t.Errorf("%+v", s)
			}
		}
		if open := w.open.names(); len(open) > 0 {
			t.Errorf("spans that did not end: %q", open)
		}
	})
}

// TestSpansLost: a loss, and the renewals that failed before it, can be found from the lock.
func TestSpansLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		p := w.join(distant(), nil)
		lease := p.lock("a")
		p.most(func(n *redlocktest.Node) { n.Refuse(true) })
		<-lease.Done()
		synctest.Wait()
		lock, lost := w.one("redlock.lock"), w.one("redlock.lost")
		if !links(lost, lock) || lost.Parent.IsValid() || lost.Status.Code != codes.Error || value(lost.Attributes, "redlock.cause") != "no_quorum" {
			t.Errorf("%+v", lost)
		}
		renewals := w.named("redlock.renew")
		for _, r := range renewals {
			if !links(r, lock) || r.Status.Code != codes.Error || value(r.Attributes, "error.type") != "no_quorum" {
				t.Errorf("%+v", r)
			}
		}
		if len(renewals) == 0 {
			t.Error("no renewal that failed")
		}
	})
}

// TestSpansWaiter: a waiter's span says when it was called.
func TestSpansWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		p := w.join(distant(), nil)
		holder := p.lock("a")
		w.spans.Reset()
		done := make(chan error)
		go func() {
			l, err := p.mutex("a").Lock(context.Background())
			if err == nil {
				err = l.Unlock(context.Background())
			}
			done <- err
		}()
		time.Sleep(time.Second)
		noErr(t, holder.Unlock(context.Background()))
		noErr(t, <-done)
		synctest.Wait()
		lock := w.one("redlock.lock")
		if !slices.ContainsFunc(lock.Events, func(e sdktrace.Event) bool { return e.Name == "redlock.called" }) {
			t.Errorf("%+v", lock.Events)
		}
	})
}

// TestSpansLate: an answer that comes after the outcome is not in the span of the next
// attempt, which is under way by then.
func TestSpansLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		p := w.join(redlocktest.New(5), nil, redlock.WithMaxAttempts(2), redlock.WithNodeTimeout(time.Second),
			redlock.WithBackoff(func(int, float64) time.Duration { return time.Millisecond }))
		for i := range 5 {
			p.Node(i).Delay(0, 600*time.Millisecond)
		}
		p.most(func(n *redlocktest.Node) {
			n.Delay(0, 400*time.Millisecond)
			n.FailWith(errors.New("OOM"), redlock.Rejected, redlocktest.Acquire)
		})
		_, err := p.mutex("a").Lock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		time.Sleep(time.Minute)
		attempts := w.named("redlock.attempt")
		for _, a := range attempts {
			for _, e := range a.Events {
				if value(e.Attributes, "redlock.verdict") != "rejected" {
					t.Errorf("attempt %s has %+v", value(a.Attributes, "redlock.attempt"), e)
				}
			}
		}
		if len(attempts) != 2 || attempts[1].EndTime.Sub(attempts[0].StartTime) < 700*time.Millisecond {
			t.Errorf("the late answers did not meet the second attempt: %+v", attempts)
		}
	})
}

// TestSpansNone: with the provider that makes none, no context is changed for them.
func TestSpansNone(t *testing.T) {
	off, err := redlockotel.NewTrace(redlockotel.WithTracerProvider(noop()))
	noErr(t, err)
	if off.LockStart != nil || off.AttemptStart != nil || off.Wait != nil {
		t.Error("there are hooks for spans")
	}
	on, err := redlockotel.NewTrace(redlockotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))))
	noErr(t, err)
	if on.LockStart == nil {
		t.Error("there are no hooks for spans")
	}
}

// TestSpansSampled: who samples nothing of the caller's gets no spans of the library's,
// but renewals and losses are sampled for themselves.
func TestSpansSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		w.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
		p := w.join(distant(), nil)
		unsampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
		lease, err := p.mutex("a").Lock(trace.ContextWithSpanContext(t.Context(), unsampled))
		noErr(t, err)
		time.Sleep(1500 * time.Millisecond)
		noErr(t, lease.Unlock(t.Context()))
		synctest.Wait()
		renew := w.one("redlock.renew")
		if len(w.spans.GetSpans()) != 1 || renew.Links[0].SpanContext.TraceID() != unsampled.TraceID() {
			t.Errorf("%d spans, %+v", len(w.spans.GetSpans()), renew)
		}
	})
}
