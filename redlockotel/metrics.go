// The instruments, and which event moves which.

package redlockotel

import (
	"errors"

	"github.com/quorumlock/redlock"
	"go.opentelemetry.io/otel/metric"
)

// metrics are the instruments that events move.
type metrics struct {
	*book

	acquired   metric.Int64Counter
	lost       metric.Int64Counter
	endangered metric.Int64Counter
	attempts   metric.Int64Counter
	called     metric.Int64Counter
	deaf       metric.Int64Counter
	dropped    metric.Int64Counter
	nodeErrors metric.Int64Counter

	heartbeat metric.Float64Histogram
	behind    metric.Float64Histogram
	lock      metric.Float64Histogram
	attempt   metric.Float64Histogram
	held      metric.Float64Histogram
	unlock    metric.Float64Histogram
	node      metric.Float64Histogram
}

// Bounds of buckets, in seconds. A round trip takes from 100µs on loopback to the node
// timeout; a wait or a hold may take minutes.
var (
	tripBounds = []float64{
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
	}
	longBounds = []float64{
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
	}
)

func newMetrics(c *config) (*metrics, error) {
	m := &metrics{book: newBook(c)}
	meter := c.meter()
	var errs []error
	counter := func(to *metric.Int64Counter, name, unit, text string) {
		var err error
		*to, err = meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
	}
	histogram := func(to *metric.Float64Histogram, bounds []float64, name, text string) {
		var err error
		*to, err = meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
	}

	counter(&m.acquired, "redlock.lease_acquired", "{lease}", "Leases granted.")
	counter(&m.lost, "redlock.lease_lost", "{lease}", "Leases that ended before their owners unlocked them.")
	counter(&m.endangered, "redlock.lease_endangered", "{lease}", "Times that the renewal of a lease was much overdue.")
	counter(&m.attempts, "redlock.attempts", "{attempt}", "Attempts to lock.")
	counter(&m.called, "redlock.waiter_called", "{call}", "Times that a node called a waiter, since the lock was released.")
	counter(&m.deaf, "redlock.node.deaf", "{time}", "Times that a node could not be listened to any more.")
	counter(&m.dropped, "redlock.cleanup_dropped", "{key}", "Keys that were not released and end with their TTL.")
	counter(&m.nodeErrors, "redlock.node.errors", "{call}", "Calls to a node without a usable answer.")

	histogram(&m.heartbeat, tripBounds, "redlock.heartbeat_latency", "Time that the renewal of a lease takes.")
	histogram(&m.behind, tripBounds, "redlock.heartbeat_delay", "How much later than planned a renewal is sent.")
	histogram(&m.lock, longBounds, "redlock.lock.duration", "Time that a call of Lock or TryLock takes, with all its waits.")
	histogram(&m.attempt, tripBounds, "redlock.attempt.duration", "Time that one attempt to lock takes.")
	histogram(&m.held, longBounds, "redlock.hold.duration", "Time from the grant of a lease to its end.")
	histogram(&m.unlock, tripBounds, "redlock.unlock.duration", "Time that a call of Unlock takes.")
	histogram(&m.node, tripBounds, "redlock.node.duration", "Time that a node takes to answer.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if !m.named {
		m.begin("")
	}
	return m, nil
}

// begin makes the series of what should never happen. One that appears with its first
// event has no increase for Prometheus, so the first lost lease would raise no alarm.
func (m *metrics) begin(name string) {
	l := labels{name: name}
	m.add(m.acquired, 0, l)
	m.add(m.endangered, 0, l)
	for _, c := range []redlock.LossCause{
		redlock.LossExpired, redlock.LossNoQuorum, redlock.LossTaken, redlock.LossNotHeld, redlock.LossMaxHold, redlock.LossClosed,
	} {
		l.cause = string(c)
		m.add(m.lost, 0, l)
	}
}

// meet does the same for a node.
func (m *metrics) meet(node string) {
	l := labels{node: node}
	m.add(m.deaf, 0, l)
	m.add(m.dropped, 0, l)
}

func (m *metrics) lockDone(e *redlock.LockDone) {
	l := labels{name: e.Name, kind: string(redlock.FailureOf(e.Err))}
	if m.named && m.news(labels{name: e.Name, cause: string(redlock.LossExpired)}) {
		m.begin(e.Name)
	}
	m.time(e.Context, m.lock, e.Elapsed, l)
	if e.Err == nil {
		m.count(e.Context, m.acquired, l)
	}
}

func (m *metrics) attemptDone(e *redlock.AttemptDone) {
	l := labels{name: e.Name, kind: string(e.Failure)}
	m.count(e.Context, m.attempts, l)
	if e.Rounds > 0 { // else no votes were asked for
		m.time(e.Context, m.attempt, e.Elapsed, l)
	}
}

// nodeDone leaves the name of the mutex out, as all do that tell of a node: nodes times
// operations times names are too many, however few the names. It also leaves the context
// out, which a meter would only look for an exemplar in: there are more of these events
// than of all others.
func (m *metrics) nodeDone(e *redlock.NodeDone) {
	l := labels{node: e.Node, op: e.Op, kind: string(e.Fault)}
	if m.news(l) {
		m.meet(e.Node)
	}
	switch {
	case e.Fault != "":
		m.add(m.nodeErrors, 1, l)
	case e.Err == nil && e.Elapsed > 0: // else it was not asked
		m.time(nowhere, m.node, e.Elapsed, l)
	}
}

func (m *metrics) renewal(e *redlock.Renewal) {
	l := labels{name: e.Name}
	m.time(e.Context, m.behind, e.Behind, l)
	l.kind = kind(e.Err)
	m.time(e.Context, m.heartbeat, e.Elapsed, l)
}

func (m *metrics) leaseLost(e *redlock.Lost) {
	l := labels{name: e.Name, cause: string(e.Cause)}
	m.count(e.Context, m.lost, l)
	m.time(e.Context, m.held, e.Held, l)
}

func (m *metrics) unlocked(e *redlock.Unlocked) {
	m.time(e.Context, m.unlock, e.Elapsed, labels{name: e.Name, kind: kind(e.Err)})
	if !errors.Is(e.Err, redlock.ErrLost) { // that was counted when it was lost
		m.time(e.Context, m.held, e.Held, labels{name: e.Name})
	}
}
