// The spans, and which event begins or ends which.

package redlockotel

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// spans makes them.
type spans struct {
	tracer  trace.Tracer
	common  []attribute.KeyValue
	unnamed bool
}

// A call is one call of Lock or TryLock, and the context by which the events that
// belong to it find its span. That is not the context's current span: what the
// holder does under the lease is work of the caller's, not of the acquisition.
type call struct {
	context.Context

	span trace.Span

	mu      sync.Mutex
	attempt trace.Span // nil while there is none
}

type callKey struct{}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns nil if e's lock was not traced.
func callOf(ctx context.Context) *call {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// attributes are the common ones, the name, and more.
func (s *spans) attributes(name string, more ...attribute.KeyValue) trace.SpanStartEventOption {
	all := make([]attribute.KeyValue, 0, len(s.common)+1+len(more))
	all = append(all, s.common...)
	if !s.unnamed {
		all = append(all, nameKey.String(name))
	}
	return trace.WithAttributes(append(all, more...)...)
}

func (s *spans) lockStart(ctx context.Context, e redlock.LockStart) context.Context {
	_, span := s.tracer.Start(ctx, "redlock.lock", s.attributes(e.Name))
	return &call{Context: ctx, span: span}
}

func (s *spans) lockDone(e *redlock.LockDone) {
	c := callOf(e.Context)
	if c == nil {
		return
	}
	c.endAttempt() // a hook of somebody else's may have panicked
	if c.span.IsRecording() {
		c.span.SetAttributes(attemptKey.Int(e.Attempts))
		if e.Token > 0 {
			c.span.SetAttributes(fencingKey.Int64(e.Token))
		}
		s.outcome(c.span, e.Err, string(redlock.FailureOf(e.Err)))
	}
	c.span.End()
}

func (s *spans) attemptStart(e *redlock.AttemptStart) {
	c := callOf(e.Context)
	if c == nil || !c.span.IsRecording() {
		return
	}
	_, span := s.tracer.Start(trace.ContextWithSpan(c.Context, c.span), "redlock.attempt",
		s.attributes(e.Name, attemptKey.Int(e.Attempt)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempt = span
}

func (s *spans) attemptDone(e *redlock.AttemptDone) {
	c := callOf(e.Context)
	if c == nil {
		return
	}
	if span := c.current(); span != nil {
		span.SetAttributes(grantedKey.Int(e.Granted), roundsKey.Int(e.Rounds))
		s.outcome(span, e.Err, string(e.Failure))
	}
	c.endAttempt()
}

func (c *call) current() trace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempt
}

func (c *call) endAttempt() {
	c.mu.Lock()
	span := c.attempt
	c.attempt = nil
	c.mu.Unlock()
	if span != nil {
		span.End()
	}
}

// nodeDone tells of the answers that an attempt is decided by. Those that come
// later belong to a span that has ended, or would be taken for the next attempt's.
func (s *spans) nodeDone(e *redlock.NodeDone) {
	if e.Late || e.Op != "acquire" && e.Op != "raise" {
		return
	}
	c := callOf(e.Context)
	if c == nil {
		return
	}
	span := c.current()
	if span == nil {
		return
	}
	all := make([]attribute.KeyValue, 0, 6)
	all = append(all, nodeKey.String(e.Node), opKey.String(e.Op), secondsKey.Float64(e.Elapsed.Seconds()))
	all = append(all, verdictKey.String(e.Verdict.String()))
	if e.Fault != "" {
		all = append(all, kindKey.String(string(e.Fault)))
		if !s.unnamed {
			all = append(all, messageKey.String(e.Err.Error()))
		}
	}
	span.AddEvent("redlock.node", trace.WithAttributes(all...))
}

func (s *spans) wait(e *redlock.Wait) {
	if c := callOf(e.Context); c != nil && c.span.IsRecording() {
		c.span.AddEvent("redlock.wait", trace.WithAttributes(
			attemptKey.Int(e.Attempt), secondsKey.Float64(e.Delay.Seconds()),
			kindKey.String(string(redlock.FailureOf(e.Err)))))
	}
}

func (s *spans) called(e *redlock.Called) {
	if c := callOf(e.Context); c != nil && c.span.IsRecording() {
		c.span.AddEvent("redlock.called", trace.WithAttributes(nodeKey.String(e.Node)))
	}
}

func (s *spans) renewal(e *redlock.Renewal) {
	s.past(e.Context, "redlock.renew", e.Elapsed, e.Err, kind(e.Err), true,
		s.attributes(e.Name, grantedKey.Int(e.Granted)))
}

func (s *spans) leaseLost(e *redlock.Lost) {
	s.past(e.Context, "redlock.lost", 0, e.Err, "lost", true,
		s.attributes(e.Name, causeKey.String(string(e.Cause))))
}

func (s *spans) unlocked(e *redlock.Unlocked) {
	s.past(e.Context, "redlock.unlock", e.Elapsed, e.Err, kind(e.Err), false, s.attributes(e.Name))
}

// past makes a span of what is over: it needs no place to keep it meanwhile, and cannot
// be left open. One that is a root is a trace of its own.
func (s *spans) past(ctx context.Context, name string, took time.Duration, err error, kind string, root bool, attributes trace.SpanStartOption) {
	now := clock.System.Now()
	opts := []trace.SpanStartOption{attributes, trace.WithTimestamp(now.Add(-took))}
	if root {
		opts = append(opts, trace.WithNewRoot())
	}
	if c := callOf(ctx); c != nil && c.span.SpanContext().IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: c.span.SpanContext()}))
	}
	_, span := s.tracer.Start(orNowhere(ctx), name, opts...)
	if span.IsRecording() {
		s.outcome(span, err, kind)
	}
	span.End(trace.WithTimestamp(now))
}

// outcome sets the status. The text of an error has names in it.
func (s *spans) outcome(span trace.Span, err error, kind string) {
	if err == nil {
		return
	}
	text := kind
	if !s.unnamed {
		text = err.Error()
	}
	span.SetAttributes(kindKey.String(kind))
	span.SetStatus(codes.Error, text)
}
