// Somebody who listens, and what was heard.

package redlocktest_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// ears is somebody who listens.
type ears struct {
	mu      sync.Mutex
	waiters []string
	at      []time.Time
	ready   bool
	end     context.CancelFunc
	done    chan error
}

// listens starts to listen.
func listens(t *testing.T, n *redlocktest.Node, channel string) *ears {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	e := &ears{end: cancel, done: make(chan error, 1)}
	go func() {
		e.done <- n.Listen(ctx, channel, func() { e.set(func() { e.ready = true }) }, func(waiter string) {
			e.set(func() { e.waiters, e.at = append(e.waiters, waiter), append(e.at, time.Now()) })
		})
	}()
	synctest.Wait()
	return e
}

// listen is listens where nothing delays it.
func listen(t *testing.T, n *redlocktest.Node, channel string) *ears {
	t.Helper()
	e := listens(t, n, channel)
	e.isReady(t, true)
	return e
}

func (e *ears) set(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

func (e *ears) isReady(t *testing.T, want bool) {
	t.Helper()
	synctest.Wait()
	e.set(func() {
		if e.ready != want {
			t.Fatalf("ready: %v, want %v", e.ready, want)
		}
	})
}

// heard checks what was heard.
func (e *ears) heard(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	e.set(func() {
		if !slices.Equal(e.waiters, want) {
			t.Fatalf("heard %q, want %q", e.waiters, want)
		}
	})
}

// ends checks that it ends by now, and how.
func (e *ears) ends(t *testing.T, why error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-e.done:
		if late, ok := errors.AsType[net.Error](err); !errors.Is(err, why) && (why != nil || !ok || !late.Timeout()) {
			t.Fatalf("ended with %v, want %v or, without one, a timeout", err, why)
		}
	default:
		t.Fatal("still listens")
	}
}

// calls lets one waiter after another be told.
func calls(t *testing.T, n *redlocktest.Node, named bool, waiters ...string) {
	t.Helper()
	for _, waiter := range waiters {
		n.SetLine("line", waiter+" 1", 0)
		n.Set("k", "a", 0)
		reply, err := n.Release(t.Context(), inLine("a"), false)
		answers(t, redlock.Released)(reply, err)
		if reply.Named != named {
			t.Fatalf("named %v, want %v", reply.Named, named)
		}
	}
}
