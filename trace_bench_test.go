//go:build unix

// What it costs to count, and to trace.

package redlock_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// BenchmarkTrace locks and unlocks on five nodes, in memory and real, without a trace,
// with one of which all hooks do nothing, and with one that logs what nobody reads.
func BenchmarkTrace(b *testing.B) {
	traces := []struct {
		name string
		opts []redlock.Option
	}{
		{"off", nil},
		{"empty", []redlock.Option{redlock.WithTrace(deafHooks())}},
		{"log=error", []redlock.Option{redlock.WithTrace(redlock.LogTrace(slog.New(slog.DiscardHandler)))}},
	}
	for _, trace := range traces {
		b.Run("nodes=memory/trace="+trace.name, func(b *testing.B) {
			benchmarkCycle(b, redlocktest.New(5).Nodes(), trace.opts)
		})
	}
	f := startFleet(b, 5)
	for _, trace := range traces {
		b.Run("nodes=redis/trace="+trace.name, func(b *testing.B) {
			benchmarkCycle(b, f.nodes(nil), trace.opts)
		})
	}
}

func benchmarkCycle(b *testing.B, nodes []redlock.Node, opts []redlock.Option) {
	b.Helper()
	client, err := redlock.New(nodes, opts...)
	noErr(b, err)
	m := mutexOf(b, client, "b")
	b.ReportAllocs()
	for b.Loop() {
		l, err := m.Lock(b.Context())
		noErr(b, err)
		noErr(b, l.Unlock(b.Context()))
	}
	b.StopTimer()
	noErr(b, client.Close())
}

// deafHooks returns a trace of which all hooks do nothing, as fast as they can.
func deafHooks() *redlock.Trace {
	return &redlock.Trace{
		LockStart:      func(ctx context.Context, _ redlock.LockStart) context.Context { return ctx },
		LockDone:       func(redlock.LockDone) {},
		AttemptStart:   func(redlock.AttemptStart) {},
		AttemptDone:    func(redlock.AttemptDone) {},
		NodeDone:       func(redlock.NodeDone) {},
		Wait:           func(redlock.Wait) {},
		Called:         func(redlock.Called) {},
		Deaf:           func(redlock.Deaf) {},
		Renewal:        func(redlock.Renewal) {},
		Danger:         func(redlock.Danger) {},
		Lost:           func(redlock.Lost) {},
		Unlocked:       func(redlock.Unlocked) {},
		CleanupDropped: func(redlock.CleanupDropped) {},
	}
}
