// How a program switches it on.

package redlockotel_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/quorumlock/redlock/redlockotel"
)

// A client whose metrics Prometheus can read.
func Example() {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		panic(err)
	}
	meters := redlockotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter)))

	trace, err := redlockotel.NewTrace(meters)
	if err != nil {
		panic(err)
	}
	client, err := redlock.New(redlocktest.New(5).Nodes(), redlock.WithTrace(trace))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	observed, err := redlockotel.Observe(client, meters)
	if err != nil {
		panic(err)
	}
	defer observed.Unregister()

	mutex, err := client.NewMutex("invoice:42")
	if err != nil {
		panic(err)
	}
	lease, err := mutex.Lock(context.Background())
	if err != nil {
		panic(err)
	}
	defer lease.Unlock(context.Background())

	// What the handler of /metrics would say.
	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.HasPrefix(line, "redlock_lease") {
			fmt.Print(line)
		}
	}

	// Output:
	// redlock_lease_acquired_total 1
	// redlock_lease_endangered_total 0
	// redlock_lease_lost_total{redlock_cause="closed"} 0
	// redlock_lease_lost_total{redlock_cause="expired"} 0
	// redlock_lease_lost_total{redlock_cause="max_hold"} 0
	// redlock_lease_lost_total{redlock_cause="no_quorum"} 0
	// redlock_lease_lost_total{redlock_cause="not_held"} 0
	// redlock_lease_lost_total{redlock_cause="taken"} 0
	// redlock_leases_held 1
}
