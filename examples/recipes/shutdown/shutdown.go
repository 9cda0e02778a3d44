// A service that is told to stop: no new work, what is under way may finish, and no
// lock is left behind.

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

var errGrace = errors.New("there was no more time to finish")

// serve does jobs, each under the lock of its name, until ctx ends, also when there are no more. From then on nobody
// waits for a lock or begins, those who have one may go on for grace, and then their
// contexts end. Close releases what is held even then, so that whoever takes over need
// not wait for a TTL. It is not for a job that heeds no context: end the process.
func serve(ctx context.Context, client *redlock.Client, jobs <-chan string, grace time.Duration, work func(ctx context.Context, l *redlock.Lease) error, report func(job string, err error)) error {
	overtime, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { end(errGrace) }) })()
	var busy sync.WaitGroup
	for {
		select {
		case name, more := <-jobs:
			if !more {
				jobs = nil
				continue
			}
			busy.Go(func() { report(name, do(ctx, overtime, client, name, work)) })
		case <-ctx.Done():
			busy.Wait()
			return client.Close() //nolint:contextcheck // it bounds itself
		}
	}
}

// do waits for a lock until ctx ends, and works until overtime does. Do of a mutex has one
// context for both.
func do(ctx, overtime context.Context, client *redlock.Client, name string, work func(ctx context.Context, l *redlock.Lease) error) error {
	mutex, err := client.NewMutex(name)
	if err != nil {
		return err
	}
	lease, err := mutex.Lock(ctx)
	if err != nil {
		return err
	}
	working, stop := context.WithCancelCause(lease.Context())
	defer context.AfterFunc(overtime, func() { stop(context.Cause(overtime)) })()
	err = work(working, lease) //nolint:contextcheck // the lease outlives ctx
	return errors.Join(err, lease.Unlock(context.WithoutCancel(ctx)))
}
