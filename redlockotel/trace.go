// The hooks of a client, tied to the instruments and the spans.

package redlockotel

import (
	"github.com/quorumlock/redlock"
)

// NewTrace returns hooks for [redlock.WithTrace] that report to OpenTelemetry. They may
// serve many clients; see [WithAttributes] for how to tell those apart. With hooks of
// your own, [redlock.JoinTraces] makes one of both.
//
// The error is that of a meter that refuses an instrument.
func NewTrace(opts ...Option) (*redlock.Trace, error) {
	c := newConfig(opts)
	m, err := newMetrics(&c)
	if err != nil {
		return nil, err
	}
	counting := m.trace()
	tracer := c.tracer()
	if tracer == nil {
		return counting, nil
	}
	s := &spans{tracer: tracer, common: c.attributes, unnamed: c.spansUnnamed}
	return redlock.JoinTraces(counting, s.trace()), nil
}

func (m *metrics) trace() *redlock.Trace {
	return &redlock.Trace{
		LockDone:    func(e redlock.LockDone) { m.lockDone(&e) },
		AttemptDone: func(e redlock.AttemptDone) { m.attemptDone(&e) },
		NodeDone:    func(e redlock.NodeDone) { m.nodeDone(&e) },
		Called:      func(e redlock.Called) { m.count(e.Context, m.called, labels{node: e.Node}) },
		Deaf:        func(e redlock.Deaf) { m.add(m.deaf, 1, labels{node: e.Node}) },
		Renewal:     func(e redlock.Renewal) { m.renewal(&e) },
		Danger:      func(e redlock.Danger) { m.count(e.Context, m.endangered, labels{name: e.Name}) },
		Lost:        func(e redlock.Lost) { m.leaseLost(&e) },
		Unlocked:    func(e redlock.Unlocked) { m.unlocked(&e) },
		CleanupDropped: func(e redlock.CleanupDropped) {
			m.count(e.Context, m.dropped, labels{node: e.Node})
		},
	}
}

func (s *spans) trace() *redlock.Trace {
	return &redlock.Trace{
		LockStart:    s.lockStart,
		LockDone:     func(e redlock.LockDone) { s.lockDone(&e) },
		AttemptStart: func(e redlock.AttemptStart) { s.attemptStart(&e) },
		AttemptDone:  func(e redlock.AttemptDone) { s.attemptDone(&e) },
		NodeDone:     func(e redlock.NodeDone) { s.nodeDone(&e) },
		Wait:         func(e redlock.Wait) { s.wait(&e) },
		Called:       func(e redlock.Called) { s.called(&e) },
		Renewal:      func(e redlock.Renewal) { s.renewal(&e) },
		Lost:         func(e redlock.Lost) { s.leaseLost(&e) },
		Unlocked:     func(e redlock.Unlocked) { s.unlocked(&e) },
	}
}
