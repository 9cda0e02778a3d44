// Leadership passes on when a leader is told to stop, as real processes.

package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

// TestLeaderResigns sends SIGTERM to the leader of two processes. The other leads
// long before the TTL of 30 s is over, with a higher term.
func TestLeaderResigns(t *testing.T) {
	t.Setenv(nodes.Env, "")
	set, err := nodes.Open(ttl)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	program := nodes.Build(t)

	first := nodes.Start(t, program, set)
	term := termOf(t, first.Says(" leads, term ", time.Minute))
	second := nodes.Start(t, program, set)
	second.Says(" is a candidate", time.Minute)
	time.Sleep(300 * time.Millisecond) // it waits
	if n := len(second.Lines()); n != 1 {
		t.Errorf("two lead at once: %q", second.Lines())
	}
	began := time.Now()
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	next := termOf(t, second.Says(" leads, term ", ttl/2))
	t.Logf("the next leads %v after SIGTERM", time.Since(began).Round(time.Millisecond))
	if code := first.Ends(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if next <= term {
		t.Errorf("term %d after %d", next, term)
	}
}

func termOf(t *testing.T, line string) (term int64) {
	t.Helper()
	_, number, _ := strings.Cut(line, " term ")
	if _, err := fmt.Sscan(number, &term); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return term
}

// TestLeaderOne: of many candidates at most one leads, terms rise, also when leaders
// resign and lose their nodes. One that cannot resign is succeeded after its TTL.
func TestLeaderOne(t *testing.T) {
	log.SetOutput(t.Output())
	synctest.Test(t, func(t *testing.T) {
		cluster := redlocktest.New(5)
		var leading atomic.Int32
		var term atomic.Int64
		lead := func(ctx context.Context, number int64) error {
			if n := leading.Add(1); n != 1 {
				t.Errorf("%d lead at once", n)
			}
			defer leading.Add(-1)
			if last := term.Swap(number); last >= number {
				t.Errorf("term %d after %d", number, last)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(5 * time.Second): // resigns
				return nil
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
		defer stop()
		ended := make(chan error)
		for range 4 {
			client, err := redlock.New(cluster.Nodes(), redlock.WithTTL(ttl))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			mutex, err := client.NewMutex("leader")
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- campaign(ctx, mutex, lead) }()
		}
		time.Sleep(time.Minute)
		before := term.Load()
		for i := range 3 { // an outage of all, longer than a lease
			cluster.Node(i).Blackhole(true)
		}
		time.Sleep(2 * ttl)
		if leading.Load() != 0 {
			t.Error("somebody leads without a quorum")
		}
		for i := range 3 {
			cluster.Node(i).Heal()
		}
		time.Sleep(2 * ttl)
		if term.Load() <= before {
			t.Errorf("nobody has led since: term %d after %d", term.Load(), before)
		}
		for range 4 {
			<-ended
		}
	})
}
