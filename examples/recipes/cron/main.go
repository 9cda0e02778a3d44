// Cron lets five hosts start the same job within a second, and one of them run it.
// The nodes are five in memory, or those of REDLOCK_NODES.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

const keep = 5 * time.Second // longer than the job, and than the hosts' clocks differ and patience; below the time between two runs

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

func run() error {
	set, err := nodes.Open(keep)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // the program ends: nobody could act on it

	var hosts sync.WaitGroup
	var runs atomic.Int32
	for host := range 5 {
		client, err := set.Client()
		if err != nil {
			return err
		}
		s, err := newSchedule(client, "nightly-report")
		if err != nil {
			return err
		}
		hosts.Go(func() {
			time.Sleep(time.Duration(host) * 200 * time.Millisecond) // their clocks differ
			ran, err := s.run(context.Background(), func(_ context.Context, token int64) error {
				fmt.Printf("host %d runs the job under token %d, in a moment\n", host, token)
				return nil
			})
			switch {
			case err != nil:
				fmt.Printf("host %d: %v\n", host, err)
			case ran:
				runs.Add(1)
			default:
				fmt.Printf("host %d leaves it to another\n", host)
			}
		})
	}
	hosts.Wait()
	fmt.Printf("%d of 5 hosts ran the job\n", runs.Load())
	if runs.Load() != 1 {
		return fmt.Errorf("it was to run once; was it run less than %v ago?", keep)
	}
	return nil
}

func newSchedule(client *redlock.Client, name string) (schedule, error) {
	m, err := client.NewMutex(name, redlock.WithTTL(keep), redlock.WithoutRenewal())
	return schedule{m}, err
}
