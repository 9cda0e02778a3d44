// Prometheus is a program that locks, and serves what redlockotel reports of it to
// Prometheus.
//
//	go run ./redlockotel/examples/prometheus -chaos
//	curl -s http://127.0.0.1:9464/metrics | grep ^redlock_
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/quorumlock/redlock/redlockotel"
)

func main() {
	log.SetFlags(log.Ltime)
	listen := flag.String("listen", "127.0.0.1:9464", "serve /metrics at this `address`")
	servers := flag.String("redis", "", "comma-separated `addresses` of Redis servers; without it five nodes in memory")
	ttl := flag.Duration("ttl", 2*time.Second, "of the leases")
	chaos := flag.Bool("chaos", false, "let the nodes in memory fail in turn, so that there is something to see")
	flag.Parse()
	if *chaos && *servers != "" {
		log.Fatal("-chaos is for nodes in memory, not for -redis")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *servers, *ttl, *chaos); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, listen, servers string, ttl time.Duration, chaos bool) error {
	// What a program does that reports to Prometheus, whatever it reports.
	exporter, err := prometheus.New() // to the default registry, which promhttp serves
	if err != nil {
		return err
	}
	meters := metric.NewMeterProvider(metric.WithReader(exporter))

	// And what it does for redlock.
	trace, err := redlockotel.NewTrace(redlockotel.WithMeterProvider(meters)) //nolint:contextcheck // it takes none
	if err != nil {
		return err
	}
	cluster := redlocktest.New(5)
	nodes := cluster.Nodes()
	if servers != "" {
		var clients []redis.UniversalClient
		for addr := range strings.SplitSeq(servers, ",") {
			c := redis.NewClient(&redis.Options{Addr: addr})
			defer c.Close()
			clients = append(clients, c)
		}
		nodes = redlock.Redis(clients...)
	}
	client, err := redlock.New(nodes, redlock.WithTTL(ttl), redlock.WithTrace(trace))
	if err != nil {
		return err
	}
	defer client.Close() //nolint:contextcheck // it takes none, and bounds itself
	observed, err := redlockotel.Observe(client, redlockotel.WithMeterProvider(meters))
	if err != nil {
		return err
	}
	defer observed.Unregister()

	// Something to report.
	var work sync.WaitGroup
	defer work.Wait()
	for i := range 6 {
		name := fmt.Sprintf("resource-%d", i%2)
		work.Go(func() { toil(ctx, client, name, ttl/10) })
	}
	work.Go(func() { toil(ctx, client, "resource-2", 4*ttl) })
	if chaos {
		work.Go(func() { spoil(ctx, cluster, ttl) })
	}

	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	log.Printf("http://%s/metrics", listener.Addr())
	http.Handle("/metrics", promhttp.Handler())
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// toil locks, works, and unlocks, until ctx ends.
func toil(ctx context.Context, client *redlock.Client, name string, takes time.Duration) {
	mutex, err := client.NewMutex(name)
	if err != nil {
		log.Print(err)
		return
	}
	for ctx.Err() == nil {
		err := mutex.Do(ctx, func(ctx context.Context, _ *redlock.Lease) error {
			pause(ctx, takes)
			return context.Cause(ctx) // why, if the lease is lost
		})
		if err != nil && ctx.Err() == nil {
			log.Printf("%s: %v", name, err)
		}
		pause(ctx, takes/2)
	}
}

// spoil lets the nodes fail in turn, in every way that has a metric of its own.
func spoil(ctx context.Context, c *redlocktest.Cluster, ttl time.Duration) {
	faults := []struct {
		what string
		do   func()
	}{
		{"node-0 refuses connections", func() { c.Node(0).Refuse(true) }},
		{"node-1 does not answer", func() { c.Node(1).Blackhole(true) }},
		{"node-2 refuses to release keys", func() {
			c.Node(2).FailWith(errors.New("NOPERM"), redlock.Forbidden, redlocktest.Release)
		}},
		{"all nodes are slow", func() {
			for i := range c.Len() {
				c.Node(i).Delay(ttl/10, ttl/10)
			}
		}},
		{"three nodes do not answer", func() {
			for i := range 3 {
				c.Node(i).Blackhole(true)
			}
		}},
	}
	for ctx.Err() == nil {
		for _, f := range faults {
			pause(ctx, ttl)
			log.Print(f.what)
			f.do()
			pause(ctx, 2*ttl)
			for i := range c.Len() {
				c.Node(i).Heal()
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
