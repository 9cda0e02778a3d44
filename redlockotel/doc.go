// Package redlockotel turns the hooks and the statistics of a redlock client into
// metrics and spans of OpenTelemetry.
//
//	trace, err := redlockotel.NewTrace()
//	...
//	client, err := redlock.New(nodes, redlock.WithTrace(trace))
//	...
//	observed, err := redlockotel.Observe(client)
//	...
//	defer observed.Unregister()
//
// [NewTrace] counts and times what happens, and makes spans of it: lease_acquired,
// lease_lost by cause, heartbeat_latency, and what explains them. [Observe] adds
// what is so at the moment: leases held, and callers who wait. README.md has all the
// metrics, and beside it are a dashboard for Grafana and alerts for Prometheus.
//
// # Attributes
//
// The number of series is bounded: by the nodes, the operations and the kinds of
// outcome. Names of mutexes are no attributes of metrics unless [WithMutexNames] says
// so; spans have them unless [WithoutSpanNames] does. Owner tokens are nowhere.
//
// # Spans
//
//   - redlock.lock is a call of Lock or TryLock, a child of the caller's span, with an
//     event for each wait;
//   - redlock.attempt, its child, is one attempt, with an event for each node that
//     answered in time;
//   - redlock.renew is a heartbeat, redlock.lost the end of a lease that was lost. Each
//     is the root of a trace of its own, with a link to the redlock.lock of the
//     lease: a lease may be held for days, and a trace should not;
//   - redlock.unlock is a child of its caller's span, with the same link.
//
// A node is an event and not a span: five nodes would make six spans of an
// attempt, and nothing happens inside of them that this process sees.
package redlockotel
