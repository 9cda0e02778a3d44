// A count of the spans that were started and have not ended.

package redlockotel_test

import (
	"context"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

type openSpans struct {
	mu   sync.Mutex
	open map[trace.SpanID]string
}

func (o *openSpans) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = make(map[trace.SpanID]string)
	}
	o.open[s.SpanContext().SpanID()] = s.Name()
}

func (o *openSpans) OnEnd(s sdktrace.ReadOnlySpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, s.SpanContext().SpanID())
}

func (o *openSpans) Shutdown(context.Context) error   { return nil }
func (o *openSpans) ForceFlush(context.Context) error { return nil }

// names of those that have not ended.
func (o *openSpans) names() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.open {
		names = append(names, n)
	}
	return names
}
