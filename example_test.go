// Runnable examples, on nodes in memory. With servers, redlock.Redis takes the place of
// cluster.Nodes.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/redlocktest"
)

// One client for each process, one mutex for each resource, and a lease for each time that
// it is locked.
func Example() {
	cluster := redlocktest.New(5)
	client, err := redlock.New(cluster.Nodes())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	mutex, err := client.NewMutex("customer-42")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // or it waits for ever
	defer cancel()
	err = mutex.Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
		fmt.Println("held:", l.Err() == nil, l.Remaining() > 9*time.Second)
		return ctx.Err() // ends when the lease does
	})
	fmt.Println(err)
	// Output:
	// held: true true
	// <nil>
}

// The error of New names all that is wrong, before anything is sent.
func ExampleNew() {
	nodes := redlocktest.New(3).Nodes()
	_, err := redlock.New(nodes, redlock.WithBackoff(nil), redlock.WithMaxAttempts(0))
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n  "))
	// Output:
	// redlock: New: WithBackoff(nil): must be a function;
	//   WithMaxAttempts(0): must be at least 1
}

// Nothing is dialled before the first lock is asked for.
func ExampleRedis() {
	var clients []redis.UniversalClient
	for _, addr := range []string{"10.0.0.1:6379", "10.1.0.1:6379", "10.2.0.1:6379"} {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: addr}))
	}
	client, err := redlock.New(redlock.Redis(clients...))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Close())
	// Output: <nil>
}

// exampleMutexes returns the mutexes of one name of two processes, and their nodes.
func exampleMutexes(opts ...redlock.Option) (ours, theirs *redlock.Mutex, cluster *redlocktest.Cluster) {
	cluster = redlocktest.New(5)
	var both [2]*redlock.Mutex
	for i := range both {
		client, err := redlock.New(cluster.Nodes(), opts...)
		if err != nil {
			log.Fatal(err)
		}
		if both[i], err = client.NewMutex("customer-42"); err != nil {
			log.Fatal(err)
		}
	}
	return both[0], both[1], cluster
}

// Lock waits until the lock is free or its context ends. Then the error is that of the
// context, and tells what the last attempt found.
func ExampleMutex_Lock() {
	ours, theirs, _ := exampleMutexes()
	held, err := theirs.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err = ours.Lock(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, redlock.ErrTaken))

	if err := held.Unlock(context.Background()); err != nil {
		log.Fatal(err)
	}
	lease, err := ours.Lock(context.Background())
	fmt.Println(err)
	fmt.Println(lease.Unlock(context.Background()))
	// Output:
	// true true
	// <nil>
	// <nil>
}

// TryLock does not wait.
func ExampleMutex_TryLock() {
	ours, theirs, _ := exampleMutexes()
	held, err := theirs.TryLock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	_, err = ours.TryLock(context.Background())
	fmt.Println("somebody else has it:", errors.Is(err, redlock.ErrTaken))
	fmt.Println(held.Unlock(context.Background()))
	// Output:
	// somebody else has it: true
	// <nil>
}

// An error of the function is returned, and the lock released all the same.
func ExampleMutex_Do() {
	ours, theirs, _ := exampleMutexes()
	errFull := errors.New("disk is full")
	err := ours.Do(context.Background(), func(context.Context, *redlock.Lease) error { return errFull })
	fmt.Println(errors.Is(err, errFull))
	fmt.Println(theirs.Do(context.Background(), func(context.Context, *redlock.Lease) error { return nil }))
	// Output:
	// true
	// <nil>
}

// The client renews leases by itself. Who would rather do it by hand says so.
func ExampleLease_Extend() {
	ours, _, cluster := exampleMutexes(redlock.WithoutRenewal())
	lease, err := ours.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	before := lease.Deadline()
	fmt.Println(lease.Extend(context.Background()), lease.Deadline().After(before))

	for i := range cluster.Len() { // the nodes lose the lock
		cluster.Node(i).Del("lock:customer-42")
	}
	err = lease.Extend(context.Background())
	fmt.Println(errors.Is(err, redlock.ErrNotHeld), errors.Is(lease.Err(), redlock.ErrLost))
	// Output:
	// <nil> true
	// true true
}

// The context of a lease ends when the lease does, with the reason as its cause.
func ExampleLease_Context() {
	ours, _, cluster := exampleMutexes(redlock.WithTTL(200 * time.Millisecond))
	lease, err := ours.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for i := range cluster.Len() {
		cluster.Node(i).Blackhole(true) // the holder is cut off
	}
	<-lease.Context().Done()
	cause := context.Cause(lease.Context())
	fmt.Println(errors.Is(cause, redlock.ErrLost), errors.Is(cause, redlock.ErrExpired))
	// Output: true true
}

// The storage refuses a holder whose lock somebody else has had since.
func ExampleLease_FencingToken() {
	ours, theirs, cluster := exampleMutexes(redlock.WithoutRenewal())
	ctx := context.Background()
	storage := fence.NewMemory()
	first, err := ours.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for i := range cluster.Len() { // its time is over, which it does not know if it is stopped
		cluster.Node(i).Del("lock:customer-42")
	}
	second, err := theirs.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(second.FencingToken() > first.FencingToken())
	fmt.Println(storage.Check(ctx, second.Name(), second.FencingToken()))
	fmt.Println(errors.Is(storage.Check(ctx, first.Name(), first.FencingToken()), fence.ErrStale))
	// Output:
	// true
	// <nil>
	// true
}

// Check finds what makes nodes unsafe. Here one of them is a replica.
func ExampleClient_Check() {
	cluster := redlocktest.New(3)
	cluster.Node(1).Tell(func(s *redlock.ServerInfo) { s.Role = "slave" })
	client, err := redlock.New(cluster.Nodes())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	report, err := client.Check(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Severity >= redlock.Critical {
			fmt.Println(f)
		}
	}
	// Output:
	// critical: node "node-1": is a slave; use servers that are independent of each other: what a replica has may go with its master
}

// Inspect tells who holds a lock: the holder logs its token, and whoever looks finds it.
func ExampleClient_Inspect() {
	cluster := redlocktest.New(3)
	client, err := redlock.New(cluster.Nodes())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	mutex, err := client.NewMutex("customer-42")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	lease, err := mutex.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	in, err := client.Inspect(ctx, "customer-42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(in.Holding, in.Token == lease.Token(), in.Remaining > 9*time.Second)
	_ = lease.Unlock(ctx)
	if in, err = client.Inspect(ctx, "customer-42"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(in.Holding)
	// Output:
	// held true true
	// free
}

// A QuorumError has what each node said.
func ExampleQuorumError() {
	ours, _, cluster := exampleMutexes()
	for i := range cluster.Len() {
		cluster.Node(i).FailWith(errors.New("OOM command not allowed"), redlock.Rejected, redlocktest.Acquire)
	}
	_, err := ours.TryLock(context.Background())
	if q, ok := errors.AsType[*redlock.QuorumError](err); ok {
		fmt.Printf("%s %s: %d votes needed, %d granted\n", q.Op, q.Name, q.Need, q.Granted)
		if n, ok := errors.AsType[*redlock.NodeError](q.Nodes.WrappedErrors()[0]); ok {
			fmt.Println(n.Op, n.Err)
		}
	}
	// Output:
	// lock customer-42: 3 votes needed, 0 granted
	// acquire OOM command not allowed
}

// Between attempts a waiter waits a random part of what doubles from 5 ms to 40.
func ExampleWithBackoff() {
	backoff := func(attempt int, random float64) time.Duration {
		most := min(5*time.Millisecond<<min(attempt-1, 10), 40*time.Millisecond)
		return time.Duration(random * float64(most))
	}
	ours, theirs, _ := exampleMutexes(redlock.WithBackoff(backoff), redlock.WithMaxAttempts(4))
	held, err := theirs.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	_, err = ours.Lock(context.Background())
	fmt.Println("after 4 attempts:", errors.Is(err, redlock.ErrTaken))
	fmt.Println(held.Unlock(context.Background()))
	// Output:
	// after 4 attempts: true
	// <nil>
}

// A holder that is stuck is not renewed for ever.
func ExampleWithMaxHold() {
	ours, _, _ := exampleMutexes(redlock.WithMaxHold(50 * time.Millisecond))
	err := ours.Do(context.Background(), func(ctx context.Context, _ *redlock.Lease) error {
		<-ctx.Done() // it heeds its context, at least
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, redlock.ErrLost), errors.Is(err, redlock.ErrMaxHold))
	// Output: true true
}

// A hook is told of each lease that is lost.
func ExampleWithTrace() {
	lost := make(chan redlock.Lost, 1)
	ours, _, _ := exampleMutexes(redlock.WithMaxHold(50*time.Millisecond), redlock.WithTrace(&redlock.Trace{
		Lost: func(l redlock.Lost) { lost <- l },
	}))
	lease, err := ours.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	l := <-lost
	fmt.Println(l.Name, errors.Is(l.Err, redlock.ErrMaxHold), lease.Err() != nil)
	// Output: customer-42 true true
}
