// Transfer sends money from A to B and from B to A at the same time, a hundred times, each
// under the locks of both accounts. The nodes are five in memory, or those of
// REDLOCK_NODES.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "transfer:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	set, err := nodes.Open(10 * time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // the program ends: nobody could act on it

	b := &bank{balances: map[string]int{"A": 1000, "B": 1000}}
	faults := make([]error, 2)
	var tellers sync.WaitGroup
	for i, way := range [][2]string{{"A", "B"}, {"B", "A"}} {
		client, err := set.Client()
		if err != nil {
			return err
		}
		tellers.Go(func() {
			for range 100 {
				faults[i] = errors.Join(faults[i], b.transfer(ctx, client, way[0], way[1], 1+i))
			}
			faults[i] = errors.Join(faults[i], client.Close()) //nolint:contextcheck // it bounds itself
		})
	}
	tellers.Wait()
	fmt.Printf("200 transfers, and no deadlock: A has %d, B has %d\n", b.balances["A"], b.balances["B"])
	return errors.Join(faults...)
}
