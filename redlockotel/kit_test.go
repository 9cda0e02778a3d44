// What the tests share: a client on nodes in memory, whose metrics and spans can be
// read.

package redlockotel_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlocktest"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorumlock/redlock/redlockotel"
)

const ttl = 3 * time.Second

// A watch collects what clients report.
type watch struct {
	t        *testing.T
	registry *prometheus.Registry
	meters   *metric.MeterProvider
	spans    *tracetest.InMemoryExporter
	open     *openSpans
	tracers  *sdktrace.TracerProvider
}

func newWatch(t *testing.T) *watch {
	t.Helper()
	w := &watch{t: t, registry: prometheus.NewRegistry(), spans: tracetest.NewInMemoryExporter(), open: &openSpans{}}
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(w.registry), otelprometheus.WithoutScopeInfo())
	noErr(t, err)
	w.meters = metric.NewMeterProvider(metric.WithReader(exporter))
	w.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithSpanProcessor(w.open))
	return w
}

// options are those that make NewTrace and Observe report to w.
func (w *watch) options(more ...redlockotel.Option) []redlockotel.Option {
	return append([]redlockotel.Option{
		redlockotel.WithMeterProvider(w.meters), redlockotel.WithTracerProvider(w.tracers),
	}, more...)
}

// scrape returns what Prometheus would read.
func (w *watch) scrape() string {
	w.t.Helper()
	r := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil)
	promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{}).ServeHTTP(r, request)
	if r.Code != http.StatusOK {
		w.t.Fatalf("scrape: %d\n%s", r.Code, r.Body)
	}
	return r.Body.String()
}

// values are the samples of a scrape, by name and labels.
func (w *watch) values() map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(w.scrape()) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		values[line[:at]] = line[at+1:]
	}
	return values
}

// families are the names in a scrape, as they are without the suffixes of histograms.
func families(scrape string) []string {
	names := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (redlock_\S+) `).FindAllStringSubmatch(scrape, -1) {
		names[m[1]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// wants compares samples, of which one that is not there is "", and "+" is any but 0.
func (w *watch) wants(want map[string]string) {
	w.t.Helper()
	got := w.values()
	for _, series := range slices.Sorted(maps.Keys(want)) {
		if want[series] == "+" && got[series] != "" && got[series] != "0" {
			continue
		}
		if got[series] != want[series] {
			w.t.Errorf("%s is %q, want %q", series, got[series], want[series])
		}
	}
	if w.t.Failed() {
		w.t.Log(w.scrape())
	}
}

// A party is a client on nodes that others may use as well.
type party struct {
	t *testing.T
	*redlocktest.Cluster
	client *redlock.Client
	clock  *clock.Skewed // the client's
}

// join makes a client that reports to w.
func (w *watch) join(c *redlocktest.Cluster, opts []redlockotel.Option, more ...redlock.Option) *party {
	w.t.Helper()
	trace, err := redlockotel.NewTrace(w.options(opts...)...)
	noErr(w.t, err)
	clk := clock.NewSkewed(clock.System, clock.Skew{Rate: 1})
	more = append([]redlock.Option{redlock.WithTTL(ttl), redlock.WithTrace(trace), redlock.WithClock(clk)}, more...)
	client, err := redlock.New(c.Nodes(), more...)
	noErr(w.t, err)
	w.t.Cleanup(func() { client.Close() })
	seen, err := redlockotel.Observe(client, w.options(opts...)...)
	noErr(w.t, err)
	w.t.Cleanup(func() { noErr(w.t, seen.Unregister()) })
	return &party{w.t, c, client, clk}
}

func (p *party) mutex(name string, opts ...redlock.Option) *redlock.Mutex {
	p.t.Helper()
	m, err := p.client.NewMutex(name, opts...)
	noErr(p.t, err)
	return m
}

func (p *party) lock(name string) *redlock.Lease {
	p.t.Helper()
	l, err := p.mutex(name).Lock(p.t.Context())
	noErr(p.t, err)
	return l
}

// most calls f with so many nodes that no quorum is left.
func (p *party) most(f func(n *redlocktest.Node)) {
	for i := range p.Len()/2 + 1 {
		f(p.Node(i))
	}
}

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got %v, want %v", err, target)
	}
}
