package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestJobsEnd: a channel that is closed has no more jobs: none with an empty name, over and over.
func TestJobsEnd(t *testing.T) {
	client, err := redlock.New(redlocktest.New(3).Nodes())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	jobs := make(chan string)
	close(jobs)
	var reports atomic.Int64
	_ = serve(ctx, client, jobs, 0, func(context.Context, *redlock.Lease) error { return nil },
		func(string, error) { reports.Add(1) })
	if n := reports.Load(); n > 0 {
		t.Errorf("%d reports of jobs that nobody has sent", n)
	}
}
