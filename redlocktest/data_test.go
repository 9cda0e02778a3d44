// Looking at a node's keys and changing them.

package redlocktest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.Set("b", "1", 1500*time.Microsecond)
		n.Set("a", "2", 0)
		n.SetList("c")
		if got := n.Keys(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("keys %q", got)
		}
		if v, left, ok := n.Get("b"); v != "1" || left != ms || !ok {
			t.Errorf("b: %q, %v, %v; want 1, 1ms, true", v, left, ok)
		}
		if v, left, ok := n.Get("a"); v != "2" || left >= 0 || !ok {
			t.Errorf("a: %q, %v, %v; want 2, negative, true", v, left, ok)
		}
		n.Set("c", "3", 0)
		if v, _, ok := n.Get("c"); v != "3" || !ok {
			t.Errorf("c: %q, %v; want 3", v, ok)
		}
		n.Del("a", "b")
		if got := n.Keys(); !slices.Equal(got, []string{"c"}) {
			t.Errorf("keys %q, want c", got)
		}
		n.FlushAll()
		if got := n.Keys(); len(got) != 0 {
			t.Errorf("keys %q, want none", got)
		}
		for _, ttl := range []time.Duration{-1, ms - 1} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("Set with a ttl of %v did not panic", ttl)
					}
				}()
				n.Set("k", "", ttl)
			}()
		}
	})
}
