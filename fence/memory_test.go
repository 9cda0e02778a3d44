// The guard in memory: its verdicts, against a naive model, and under concurrency.

package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/redlock/fence"
)

var _ fence.Guard = (*fence.Memory)(nil)

func TestMemoryCheck(t *testing.T) {
	const a, b = "customer-1", "customer-2"
	steps := []struct {
		resource string
		token    int64
		highest  int64 // that refuses the token; 0 if nothing does
	}{
		{a, 7, 0},
		{a, 7, 0}, // the same holder
		{a, 6, 7},
		{a, 1, 7},
		{a, 7, 0}, // still the holder: what was refused left no trace
		{b, 1, 0}, // another resource
		{a, 100, 0},
		{a, 7, 100},
		{a, math.MaxInt64, 0},
		{a, math.MaxInt64 - 1, math.MaxInt64},
		{b, 1, 0},
		{"Customer-1", 1, 0}, // names are bytes
		{a + " ", 1, 0},
		{"\xff\x00", 1, 0},
	}
	for name, guard := range map[string]fence.Guard{"new": fence.NewMemory(), "zero": new(fence.Memory)} {
		t.Run(name, func(t *testing.T) {
			for i, s := range steps {
				checkVerdict(t, fmt.Sprintf("step %d", i), guard.Check(t.Context(), s.resource, s.token), s.resource, s.token, s.highest)
			}
		})
	}
}

// checkVerdict checks that err is nil, or refuses the token because of highest.
func checkVerdict(t *testing.T, what string, err error, resource string, token, highest int64) {
	t.Helper()
	if highest == 0 {
		if err != nil {
			t.Errorf("%s: token %d for %q: %v", what, token, resource, err)
		}
		return
	}
	stale, ok := errors.AsType[*fence.StaleError](err)
	if !ok || !errors.Is(err, fence.ErrStale) {
		t.Errorf("%s: token %d for %q: %v, want a StaleError", what, token, resource, err)
		return
	}
	if stale.Resource != resource || stale.Token != token || stale.Highest != highest {
		t.Errorf("%s: %+v, want token %d for %q refused by %d", what, stale, token, resource, highest)
	}
}

func TestMemoryRefusesWhatIsNoToken(t *testing.T) {
	guard := fence.NewMemory()
	if err := guard.Check(t.Context(), "r", 5); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		resource string
		token    int64
		want     error
	}{
		{"r", 0, fence.ErrNoToken},
		{"r", -1, fence.ErrNoToken},
		{"r", math.MinInt64, fence.ErrNoToken},
		{"new", 0, fence.ErrNoToken},
		{"", 5, fence.ErrNoResource},
		{"", 0, fence.ErrNoResource},
	} {
		err := guard.Check(t.Context(), tt.resource, tt.token)
		if !errors.Is(err, tt.want) || errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d for %q: %v, want %v", tt.token, tt.resource, err, tt.want)
		}
	}
}

func TestErrorText(t *testing.T) {
	guard := fence.NewMemory()
	if err := guard.Check(t.Context(), "r", 5); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 1<<16)
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("lease is lost"))
	for _, tt := range []struct {
		ctx      context.Context
		resource string
		token    int64
		want     string
	}{
		{t.Context(), "r", 4, `fence: check "r": stale fencing token: 4, after 5`},
		{t.Context(), "r", 0, `fence: check "r": not a fencing token: 0: is fencing off?`},
		{t.Context(), "r\n", -2, `fence: check "r\n": not a fencing token: -2`},
		{t.Context(), "", 4, `fence: check: no resource name`},
		{t.Context(), long, 0, `fence: check "` + long[:80] + `… (65536 bytes)": not a fencing token: 0: is fencing off?`},
		{ended, "r", 6, `fence: check "r": context canceled: lease is lost`},
	} {
		if err := guard.Check(tt.ctx, tt.resource, tt.token); err == nil || err.Error() != tt.want {
			t.Errorf("error %v\nwant  %s", err, tt.want)
		}
	}
}

func TestMemoryWhenContextHasEnded(t *testing.T) {
	guard := fence.NewMemory()
	cause := errors.New("lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	err := guard.Check(ctx, "r", 9)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("%v, want context.Canceled and the cause", err)
	}
	if err := guard.Check(t.Context(), "r", 1); err != nil {
		t.Errorf("a token was stored although the context had ended: %v", err)
	}
}

// FuzzMemory compares with a model that keeps every accepted token.
func FuzzMemory(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 0, 0, 1, 3, 1, 2})
	f.Add([]byte{2, 255, 2, 254, 2, 128, 2, 127, 2, 255})
	f.Fuzz(func(t *testing.T, ops []byte) {
		ops = ops[:min(len(ops), 1024)] // the model takes the square of it
		guard := fence.NewMemory()
		accepted := make(map[string][]int64)
		for ; len(ops) >= 2; ops = ops[2:] {
			resource := string(rune('a' + ops[0]%3))
			token := int64(int8(ops[1])) // a few are not positive
			if ops[0] >= 128 {
				token += 1 << 53 // where float64 no longer tells neighbours apart
			}
			err := guard.Check(t.Context(), resource, token)
			higher := false
			for _, other := range accepted[resource] {
				higher = higher || other > token
			}
			switch {
			case token <= 0:
				if !errors.Is(err, fence.ErrNoToken) {
					t.Fatalf("token %d: %v", token, err)
				}
			case higher:
				if !errors.Is(err, fence.ErrStale) {
					t.Fatalf("token %d after %v: %v", token, accepted[resource], err)
				}
			case err != nil:
				t.Fatalf("token %d after %v: %v", token, accepted[resource], err)
			default:
				accepted[resource] = append(accepted[resource], token)
			}
		}
	})
}

// TestMemoryConcurrently presents shuffled tokens from many goroutines. A check
// that began after a higher token was accepted must refuse, and one that refused
// must have met such a token.
func TestMemoryConcurrently(t *testing.T) {
	const goroutines, each = 64, 500
	tokens := rand.Perm(goroutines * each)
	guard := fence.NewMemory()
	var accepted atomic.Int64  // the highest token that was accepted, reported after the fact
	var presented atomic.Int64 // the highest token that was presented, reported before
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for _, n := range tokens[g*each : (g+1)*each] {
				token := int64(n/2 + 1) // each of them twice
				before := accepted.Load()
				raise(&presented, token)
				err := guard.Check(t.Context(), "r", token)
				switch {
				case err == nil && token < before:
					t.Errorf("token %d was accepted after %d", token, before)
				case err == nil:
					raise(&accepted, token)
				case !errors.Is(err, fence.ErrStale):
					t.Error(err)
				case token >= presented.Load():
					t.Errorf("token %d was refused, and none above it presented", token)
				}
			}
		})
	}
	wg.Wait()
	if got, want := accepted.Load(), int64(goroutines*each/2); got != want {
		t.Errorf("the highest accepted token is %d, want %d", got, want)
	}
}

func raise(n *atomic.Int64, to int64) {
	for {
		old := n.Load()
		if old >= to || n.CompareAndSwap(old, to) {
			return
		}
	}
}
