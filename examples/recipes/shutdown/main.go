// Shutdown is a service with three jobs under way and a fourth that waits for a lock.
// SIGTERM, or Ctrl-C, ends it; by itself it does so after two seconds. The nodes are five
// in memory, or those of REDLOCK_NODES.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

const ttl = 30 * time.Second

func main() {
	length := flag.Duration("work", 3*time.Second, "how long a job takes")
	grace := flag.Duration("grace", 5*time.Second, "how long jobs may go on when the service is told to stop")
	alone := flag.Duration("stop", 2*time.Second, "when the service stops by itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *alone)
	defer cancel()
	if err := run(ctx, *length, *grace); err != nil {
		fmt.Fprintln(os.Stderr, "shutdown:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, length, grace time.Duration) error {
	set, err := nodes.Open(ttl)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // the program ends: nobody could act on it
	client, err := set.Client(redlock.WithTTL(ttl))
	if err != nil {
		return err
	}
	jobs := make(chan string, 4)
	for _, name := range []string{"customer-1", "customer-2", "customer-3", "customer-1"} {
		jobs <- name
	}
	return serve(ctx, client, jobs, grace, func(ctx context.Context, l *redlock.Lease) error {
		fmt.Printf("%s: begun\n", l.Name())
		select {
		case <-time.After(length):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, func(job string, err error) {
		fmt.Printf("%s: ended, error %v\n", job, err)
	})
}
