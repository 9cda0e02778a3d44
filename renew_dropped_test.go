// Leases that their owners forgot: they end with their TTL, and say so. One that
// is still in use in any way goes on.

package redlock_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// A logBuffer is where a logger writes.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.buf.String()), "\n")
}

// collect has the garbage collected again and again while it waits.
func collect(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		runtime.GC()
	}
}

func TestRenewDropped(t *testing.T) {
	const ttl = 600 * time.Millisecond
	type kept struct {
		value any
		ctx   context.Context
	}
	for _, c := range []struct {
		name  string
		keep  func(l *redlock.Lease) kept
		held  bool // it is to go on
		renew redlock.Option
	}{
		{"nothing", func(*redlock.Lease) kept { return kept{} }, false, asItIs},
		{"nothing, without renewal", func(*redlock.Lease) kept { return kept{} }, false, redlock.WithoutRenewal()},
		{"the token", func(l *redlock.Lease) kept { return kept{value: l.Token()} }, false, asItIs},
		{"Done", func(l *redlock.Lease) kept { return kept{value: l.Done()} }, false, asItIs},
		{"the lease", func(l *redlock.Lease) kept { return kept{value: l} }, true, asItIs},
		{"the context", func(l *redlock.Lease) kept { return kept{ctx: l.Context()} }, true, asItIs},
		{"a context of it", func(l *redlock.Lease) kept {
			ctx := context.WithValue(l.Context(), doKey{}, 1)
			return kept{ctx: ctx}
		}, true, asItIs},
		{"Unlock", func(l *redlock.Lease) kept { return kept{value: l.Unlock} }, true, asItIs},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := redlocktest.New(3)
			var logs logBuffer
			var book logbook
			p := join(t, cluster, 0, 0, redlock.WithTTL(ttl), book.trace(), c.renew,
				redlock.WithLogger(slog.New(slog.NewTextHandler(&logs, nil))))
			rival := join(t, cluster, 0, 0, redlock.WithTTL(ttl))
			m := mutexOf(t, p.client, "a")

			var have kept
			locked := make(chan struct{})
			go func() { // a stack of its own, so that nothing of it stays on ours
				defer close(locked)
				have = c.keep(mustLockFrom(m))
			}()
			<-locked
			start := time.Now()
			collect(5 * ttl)
			l, err := mutexOf(t, rival.client, "a").TryLock(t.Context())
			switch {
			case c.held && err == nil:
				t.Error("somebody else has the lock")
			case !c.held && err != nil:
				t.Errorf("nobody else can have the lock: %v", err)
			}
			if err == nil {
				mustUnlock(t, l)
			}
			said := 0
			for _, line := range logs.lines() {
				if strings.Contains(line, "dropped without Unlock") && strings.Contains(line, "mutex=a") {
					said++
				}
			}
			want := 1
			if c.held || strings.Contains(c.name, "without renewal") {
				want = 0
			}
			if said != want {
				t.Errorf("it was logged %d times, want %d: %q", said, want, logs.lines())
			}
			if !c.held {
				book.lost(t, 1)
				for _, at := range book.read().at {
					if at.Sub(start) > ttl {
						t.Errorf("renewed %v after it was dropped", at.Sub(start))
					}
				}
			} else {
				book.lost(t, 0)
				if have.ctx != nil && have.ctx.Err() != nil {
					t.Error("the context has ended")
				}
			}
			runtime.KeepAlive(have)
			noErr(t, p.client.Close())
			if have.ctx != nil && have.ctx.Err() == nil {
				t.Error("the context outlives the client")
			}
		})
	}
}
