// What the tests share: claims, and checks of what a call returned.

package redlocktest_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

const (
	ms  = time.Millisecond
	ttl = 10 * time.Second
)

// claim is a claim of the lock "k" by value.
func claim(value string, ttl time.Duration) *redlock.Claim {
	return &redlock.Claim{Lock: "k", Tombstone: "tomb:" + value, Value: value, TTL: ttl}
}

func newNode() *redlocktest.Node { return redlocktest.New(1).Node(0) }

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// answers checks for an answer of the server.
func answers(t *testing.T, want redlock.Verdict) func(redlock.Reply, error) {
	return func(got redlock.Reply, err error) {
		t.Helper()
		if err != nil || got.Verdict != want {
			t.Fatalf("got verdict %v, error %v; want verdict %v", got.Verdict, err, want)
		}
	}
}

// fails checks for an error.
func fails(t *testing.T, want redlock.Verdict, target error) func(redlock.Reply, error) {
	return func(got redlock.Reply, err error) {
		t.Helper()
		if !errors.Is(err, target) || got.Verdict != want {
			t.Fatalf("got verdict %v, error %v; want verdict %v, error %v", got.Verdict, err, want, target)
		}
	}
}

// timesOut checks for the timeout of a driver.
func timesOut(t *testing.T, want redlock.Verdict) func(redlock.Reply, error) {
	return func(got redlock.Reply, err error) {
		t.Helper()
		if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() || got.Verdict != want {
			t.Fatalf("got verdict %v, error %v; want verdict %v, a timeout", got.Verdict, err, want)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Fatalf("%v is a context error", err)
		}
	}
}

// outcome is what a call in the background returned.
type outcome struct {
	reply redlock.Reply
	err   error
	told  string // whom a release told
}

// background makes a call in another goroutine.
func background(call func() (redlock.Reply, error)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		reply, err := call()
		done <- outcome{reply: reply, err: err}
	}()
	return done
}

// takes fails the test if f does not take exactly d.
func takes(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if got := time.Since(start); got != d {
		t.Fatalf("took %v, want %v", got, d)
	}
}

// holds checks the value of the lock, "" for none.
func holds(t *testing.T, n *redlocktest.Node, want string) {
	t.Helper()
	if got, _, _ := n.Get("k"); got != want {
		t.Fatalf("lock holds %q, want %q", got, want)
	}
}
