// What can be chosen, and what holds if nothing is.

package redlockotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// scope is the name under which everything is reported.
const scope = "github.com/quorumlock/redlock/redlockotel"

// An Option changes what [NewTrace] or [Observe] does.
type Option func(*config)

type config struct {
	meters       metric.MeterProvider
	tracers      trace.TracerProvider
	attributes   []attribute.KeyValue
	metricsNamed bool
	spansUnnamed bool
}

func newConfig(opts []Option) config {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

func (c *config) meter() metric.Meter { return c.meters.Meter(scope) }

// tracer returns nil if there are to be no spans.
func (c *config) tracer() trace.Tracer {
	if _, none := c.tracers.(tracenoop.TracerProvider); none {
		return nil
	}
	return c.tracers.Tracer(scope)
}

// WithMeterProvider sets where the metrics go. The default is the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.meters = p }
}

// WithTracerProvider sets where the spans go. The default is the global provider.
// With the one of package go.opentelemetry.io/otel/trace/noop there are none, and they
// cost nothing.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) { c.tracers = p }
}

// WithAttributes adds attributes to all metrics and spans. Clients of one process
// that are to be told apart need it, with other values for each; those that [Observe]
// sees must be told apart, or each overwrites the figures of the other.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return func(c *config) { c.attributes = append(c.attributes, attributes...) }
}

// WithMutexNames adds the name of the mutex, as redlock.name, to the metrics that have
// one. It is for programs with few names: each makes series of its own, and with
// names like "invoice:4711" they soon cost more than the locks.
func WithMutexNames() Option {
	return func(c *config) { c.metricsNamed = true }
}

// WithoutSpanNames keeps the names of mutexes out of the spans as well, and for their
// sake the text of errors, of which only the kind is left.
func WithoutSpanNames() Option {
	return func(c *config) { c.spansUnnamed = true }
}
