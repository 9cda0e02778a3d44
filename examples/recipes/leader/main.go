// Leader stands for election and leads until SIGTERM, when it resigns. Start it several
// times with the same REDLOCK_NODES. Without, it has five nodes in memory for itself, and
// two candidates, of which the first resigns after a second.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

// How long nobody leads after a leader that could not resign, at most.
const ttl = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, err := nodes.Open(ttl)
	if err == nil {
		defer func() { _ = set.Close() }() // the program ends: nobody could act on it
		if os.Getenv(nodes.Env) == "" {
			err = demo(ctx, set)
		} else {
			err = candidate(ctx, set, fmt.Sprintf("process %d", os.Getpid()))
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

// candidate is one process' life.
func candidate(ctx context.Context, set *nodes.Nodes, name string) error {
	client, err := set.Client(redlock.WithTTL(ttl))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() //nolint:contextcheck // it bounds itself; what it could not release ends by itself
	mutex, err := client.NewMutex("leader")
	if err != nil {
		return err
	}
	fmt.Printf("%s is a candidate\n", name)
	return campaign(ctx, mutex, func(ctx context.Context, term int64) error {
		fmt.Printf("%s leads, term %d\n", name, term)
		<-ctx.Done() // a leader's work
		fmt.Printf("%s leads no more\n", name)
		return context.Cause(ctx)
	})
}

// demo has the first of two candidates resign.
func demo(ctx context.Context, set *nodes.Nodes) error { //nolint:contextcheck // candidate closes its client
	both, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	first, resign := context.WithTimeout(both, time.Second)
	defer resign()
	var candidates sync.WaitGroup
	for i, ctx := range []context.Context{first, both} {
		candidates.Go(func() {
			time.Sleep(time.Duration(i) * 300 * time.Millisecond)
			if err := candidate(ctx, set, fmt.Sprintf("candidate %d", i+1)); !errors.Is(err, context.DeadlineExceeded) {
				fmt.Println(err)
			}
		})
	}
	candidates.Wait()
	return nil
}
