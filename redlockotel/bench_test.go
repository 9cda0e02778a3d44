// What it costs to be seen, on nodes that cost as little as nodes can.

package redlockotel_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/redlockotel"
)

// discard ends spans, and does nothing with them.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// degrees are how much is seen, from nothing on.
var degrees = []struct {
	name string
	opts func(testing.TB) []redlock.Option
}{
	{"off", func(testing.TB) []redlock.Option { return nil }},
	{"metrics", seen(noop())},
	{"never", seen(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()), sdktrace.WithSyncer(discard{})))},
	{"always", seen(sdktrace.NewTracerProvider(sdktrace.WithSyncer(discard{})))},
}

func seen(p trace.TracerProvider) func(testing.TB) []redlock.Option {
	return func(t testing.TB) []redlock.Option {
		hooks, err := redlockotel.NewTrace(redlockotel.WithTracerProvider(p),
			redlockotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))))
		noErr(t, err)
		return []redlock.Option{redlock.WithTrace(hooks)}
	}
}

func benchMutex(b *testing.B, opts ...redlock.Option) *redlock.Mutex {
	b.Helper()
	client, err := redlock.New(redlocktest.New(5).Nodes(), opts...)
	noErr(b, err)
	b.Cleanup(func() { client.Close() })
	m, err := client.NewMutex("a")
	noErr(b, err)
	return m
}

func cycle(b *testing.B, m *redlock.Mutex) {
	b.Helper()
	l, err := m.Lock(context.Background())
	noErr(b, err)
	noErr(b, l.Unlock(context.Background()))
}

// BenchmarkLock is a lock and an unlock on five nodes in memory, where both take next to
// no time: spans=never and spans=always have the metrics as well.
func BenchmarkLock(b *testing.B) {
	for _, d := range degrees {
		b.Run("seen="+d.name, func(b *testing.B) {
			m := benchMutex(b, d.opts(b)...)
			b.ReportAllocs()
			for b.Loop() {
				cycle(b, m)
			}
		})
	}
}

// BenchmarkOverhead is the same with all of them in turn, so that what else the machine
// does meets all alike. It reports how much longer each takes than off, by the medians of
// many short turns.
func BenchmarkOverhead(b *testing.B) {
	const turn = 10
	mutexes := make([]*redlock.Mutex, len(degrees))
	took := make([][]time.Duration, len(degrees))
	for i, d := range degrees {
		mutexes[i] = benchMutex(b, d.opts(b)...)
	}
	for b.Loop() {
		for i, m := range mutexes {
			start := clock.System.Elapsed()
			for range turn {
				cycle(b, m)
			}
			took[i] = append(took[i], (clock.System.Elapsed()-start)/turn)
		}
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return float64(took[i][len(took[i])/2])
	}
	off := median(0)
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
	b.ReportMetric(off, "off-ns/lock")
	for i := range degrees[1:] {
		b.ReportMetric(median(i+1)/off, degrees[i+1].name+"/off")
	}
}
