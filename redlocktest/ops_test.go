// The operations: what each answers, and what it leaves.

package redlocktest_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
)

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		time.Sleep(ms)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", 2*ttl))) // again, changing nothing
		if value, left, ok := n.Get("k"); value != "a" || left != ttl-ms || !ok {
			t.Errorf("got %q, %v, %v; want a, %v", value, left, ok, ttl-ms)
		}
		reply, err := n.Acquire(t.Context(), claim("b", ttl))
		answers(t, redlock.Taken)(reply, err)
		if reply.Remaining != ttl-ms {
			t.Errorf("remaining %v, want %v", reply.Remaining, ttl-ms)
		}
		n.Set("k", "operator", 0)
		reply, err = n.Acquire(t.Context(), claim("b", ttl))
		answers(t, redlock.Taken)(reply, err)
		if reply.Remaining >= 0 {
			t.Errorf("remaining %v, want negative for a key without expiry", reply.Remaining)
		}
	})
}

func TestAcquireBuried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		answers(t, redlock.Absent)(n.Release(t.Context(), claim("a", 20*ms), true))
		answers(t, redlock.Buried)(n.Acquire(t.Context(), claim("a", ttl)))
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("b", 10*ms)))
		// The tombstone counts whatever the lock holds.
		answers(t, redlock.Buried)(n.Acquire(t.Context(), claim("a", ttl)))
		n.Set("k", "a", 10*ms)
		answers(t, redlock.Buried)(n.Acquire(t.Context(), claim("a", ttl)))
		time.Sleep(21 * ms)
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
	})
}

func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		answers(t, redlock.Absent)(n.Extend(t.Context(), claim("a", ttl)))
		if keys := n.Keys(); len(keys) != 0 {
			t.Errorf("Extend created %q", keys)
		}
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		for _, c := range []struct{ ttl, want time.Duration }{{ttl - ms, ttl}, {ttl, ttl}, {ttl + ms, ttl + ms}} {
			answers(t, redlock.Granted)(n.Extend(t.Context(), claim("a", c.ttl)))
			if _, left, _ := n.Get("k"); left != c.want {
				t.Errorf("after Extend by %v, %v are left, want %v", c.ttl, left, c.want)
			}
		}
		reply, err := n.Extend(t.Context(), claim("b", ttl))
		answers(t, redlock.Taken)(reply, err)
		if reply.Remaining != ttl+ms {
			t.Errorf("remaining %v, want %v", reply.Remaining, ttl+ms)
		}
	})
}

func TestExtendAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("a", ttl)))
		claims := []*redlock.Claim{claim("b", ttl), claim("a", 2*ttl), claim("a", 3*ttl)}
		claims[2].Lock = "nothing"
		all := func(ctx context.Context, check ...func(redlock.Reply, error)) {
			t.Helper()
			replies, errs := n.ExtendAll(ctx, claims)
			if len(replies) != len(claims) || len(errs) != len(claims) {
				t.Fatalf("%d replies, %d errors, want %d", len(replies), len(errs), len(claims))
			}
			for i, check := range check {
				check(replies[i], errs[i])
			}
		}
		for _, way := range []time.Duration{0, 10 * ms} {
			n.Delay(way, way)
			takes(t, 2*way, func() {
				all(within(t, ttl), answers(t, redlock.Taken), answers(t, redlock.Granted), answers(t, redlock.Absent))
			})
		}
		if _, left, _ := n.Get("k"); left != 2*ttl-10*ms {
			t.Errorf("%v left, want %v", left, 2*ttl-10*ms)
		}
		n.LoseReplies(1)
		takes(t, 20*ms, func() {
			all(t.Context(), fails(t, redlock.Unknown, io.EOF), answers(t, redlock.Granted), answers(t, redlock.Absent))
		})
		takes(t, 15*ms, func() {
			all(within(t, 15*ms), timesOut(t, redlock.Unknown), timesOut(t, redlock.Unknown), timesOut(t, redlock.Unknown))
		})
		n.Refuse(true)
		refused := fails(t, redlock.Unsent, syscall.ECONNREFUSED)
		all(t.Context(), refused, refused, refused)
	})
}

func TestRelease(t *testing.T) {
	for _, bury := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode()
			var want []string
			if bury {
				want = []string{"tomb:a"}
			}
			tombstone := func() {
				t.Helper()
				if _, left, ok := n.Get("tomb:a"); ok != bury || bury && left != ttl {
					t.Errorf("tombstone: %v, %v left", ok, left)
				}
				n.Del("tomb:a")
			}
			answers(t, redlock.Absent)(n.Release(t.Context(), claim("a", ttl), bury))
			tombstone()
			answers(t, redlock.Granted)(n.Acquire(t.Context(), claim("b", ttl)))
			reply, err := n.Release(t.Context(), claim("a", ttl), bury)
			answers(t, redlock.Taken)(reply, err)
			if reply.Remaining != ttl {
				t.Errorf("remaining %v, want %v", reply.Remaining, ttl)
			}
			tombstone()
			n.Set("k", "a", 0)
			answers(t, redlock.Released)(n.Release(t.Context(), claim("a", ttl), bury))
			if got := n.Keys(); !slices.Equal(got, want) {
				t.Errorf("keys %q, want %q", got, want)
			}
			tombstone()
		})
	}
}

func TestWrongType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.SetList("k")
		wrongType := func(reply redlock.Reply, err error) {
			t.Helper()
			if reply.Verdict != redlock.Forbidden || err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
				t.Errorf("got verdict %v, error %v; want Forbidden, WRONGTYPE", reply.Verdict, err)
			}
		}
		wrongType(n.Acquire(t.Context(), claim("a", ttl)))
		wrongType(n.Extend(t.Context(), claim("a", ttl)))
		wrongType(n.Release(t.Context(), claim("a", ttl), false))
		if value, _, ok := n.Get("k"); ok {
			t.Errorf("Get of a list returned %q", value)
		}
		if got := n.Keys(); !slices.Equal(got, []string{"k"}) {
			t.Errorf("keys %q, want the list untouched", got)
		}
	})
}
