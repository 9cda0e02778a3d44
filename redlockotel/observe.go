// What is so at the moment, asked for when somebody collects it.

package redlockotel

import (
	"context"
	"errors"
	"slices"

	"github.com/quorumlock/redlock"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Observe reports what [redlock.Client.Stats] says of the moment, each time that the
// metrics are collected, until the registration is unregistered: do that before or
// after the client is closed.
//
// Clients of one process need attributes that differ: see [WithAttributes].
func Observe(client *redlock.Client, opts ...Option) (metric.Registration, error) {
	if client == nil {
		return nil, errors.New("redlockotel: Observe: client is nil")
	}
	c := newConfig(opts)
	meter := c.meter()
	held, err1 := meter.Int64ObservableUpDownCounter("redlock.leases_held",
		metric.WithUnit("{lease}"), metric.WithDescription("Leases that are held now."))
	waiting, err2 := meter.Int64ObservableUpDownCounter("redlock.locks_waiting",
		metric.WithUnit("{call}"), metric.WithDescription("Calls of Lock that wait now."))
	pause, err3 := meter.Float64ObservableGauge("redlock.longest_pause",
		metric.WithUnit("s"), metric.WithDescription("By how much the process was late with a timer of a lease, at most."))
	advice, err4 := meter.Float64ObservableGauge("redlock.advised_ttl",
		metric.WithUnit("s"), metric.WithDescription("The TTL that would suit what was measured, where the present one does not."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	common := metric.WithAttributeSet(attribute.NewSet(c.attributes...))
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := client.Stats()
		o.ObserveInt64(held, s.LeasesHeld, common)
		o.ObserveInt64(waiting, s.Waiting, common)
		o.ObserveFloat64(pause, s.LongestPause.Seconds(), common)
		for _, a := range s.Advice {
			reason := reasonKey.String(string(a.Reason))
			o.ObserveFloat64(advice, a.TTL.Seconds(), metric.WithAttributes(append(slices.Clone(c.attributes), reason)...))
		}
		return nil
	}, held, waiting, pause, advice)
}
