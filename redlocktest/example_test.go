// How a test uses the package.

package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

func Example() {
	cluster := redlocktest.New(5)
	client, err := redlock.New(cluster.Nodes())
	if err != nil {
		panic(err)
	}
	defer client.Close()
	mutex, err := client.NewMutex("invoice:42")
	if err != nil {
		panic(err)
	}

	// Two of five nodes may be down.
	cluster.Node(0).Refuse(true)
	cluster.Node(1).Refuse(true)
	lease, err := mutex.TryLock(context.Background())
	if err != nil {
		panic(err)
	}
	_, ttl, held := cluster.Node(4).Get("lock:invoice:42")
	fmt.Println(held, ttl > 9*time.Second)

	// The third is one too many.
	_ = lease.Unlock(context.Background())
	cluster.Node(2).Refuse(true)
	_, err = mutex.TryLock(context.Background())
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum))

	// Output:
	// true true
	// true
}

// Redis ends the life of a key by its wall clock. If that of enough nodes is
// set forward, a lock ends early there.
func ExampleNode_Clock() {
	cluster := redlocktest.New(1)
	node := cluster.Node(0)
	node.Set("lock:invoice:42", "somebody", 10*time.Second)
	node.Clock().Step(time.Minute)
	fmt.Println(node.Keys())

	// Output:
	// []
}

// An observer stands between the execution of a command and its reply, which
// is where a test can let something happen at the worst moment.
func ExampleNode_Observe() {
	node := redlocktest.New(1).Node(0)
	node.Observe(func(c redlocktest.Call) {
		fmt.Println(c.Op, c.Value, c.Verdict == redlock.Granted)
		node.Restart(false)
	})
	_, err := node.Acquire(context.Background(),
		&redlock.Claim{Lock: "k", Tombstone: "t", Value: "v", TTL: time.Second})
	fmt.Println(err, node.Keys())

	// Output:
	// acquire v true
	// EOF []
}
