// An Inbox in the hands of callers who ask again, panic, or misuse it.

package quorum_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// TestCollectEndsDespiteReplies: a count that asks again after every reply, of
// a node that answers at once, must not keep Collect from noticing the time.
func TestCollectEndsDespiteReplies(t *testing.T) {
	in := quorum.NewInbox(1, func(int, int) {})
	in.Put(0, 0)
	timeout := make(chan struct{})
	o, err := in.Collect(t.Context(), timeout, func(node, n int) quorum.Outcome {
		switch n {
		case 100:
			close(timeout)
		case 10_000:
			return quorum.Lost // gives up on Collect
		}
		in.Put(node, n+1)
		return quorum.Pending
	})
	if o != quorum.Pending || err != nil {
		t.Errorf("%v, %v, want Pending", o, err)
	}
}

// TestGatherSteps: count asks a node again, so one node replies more often than
// the inbox has room for at first.
func TestGatherSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in *quorum.Inbox[int]
		var got []int
		late := make(chan int, 100)
		o, err := quorum.Gather(t.Context(), nil, 2,
			func(node int, i *quorum.Inbox[int]) { in = i; i.Put(node, 0) },
			func(node, step int) quorum.Outcome {
				got = append(got, step)
				if step == 3 {
					return quorum.Won
				}
				for range 3 {
					in.Put(node, step+1)
				}
				return 0 // not an outcome: goes on, like Pending
			},
			func(_, step int) { late <- step })
		if o != quorum.Won || err != nil {
			t.Errorf("%v, %v, want Won", o, err)
		}
		want := slices.Concat(slices.Repeat([]int{0}, 2), slices.Repeat([]int{1}, 6), slices.Repeat([]int{2}, 18), []int{3})
		if !slices.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
		if n, asked := len(late), 3*18; n != asked-1 {
			t.Errorf("%d replies were late, want %d", n, asked-1)
		}
	})
}

// TestCollectGrows: the replies of a batch that is being counted stay what they
// are when more arrive than there is room for.
func TestCollectGrows(t *testing.T) {
	in := quorum.NewInbox[int](2, nil)
	next := 0
	put := func(n int) {
		for range n {
			in.Put(0, next)
			next++
		}
	}
	put(1)
	var got []int
	_, _ = in.Collect(t.Context(), nil, func(_, n int) quorum.Outcome {
		got = append(got, n)
		switch n {
		case 0:
			put(2)
		case 1, 3:
			put(5)
		case 12:
			return quorum.Won
		}
		return quorum.Pending
	})
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// TestGatherPutWithTheDecision: what arrives while count decides is in the queue
// when the inbox closes. It is handed on, and once.
func TestGatherPutWithTheDecision(t *testing.T) {
	var late []int
	var in *quorum.Inbox[int]
	_, _ = quorum.Gather(t.Context(), nil, 1,
		func(_ int, i *quorum.Inbox[int]) { in = i; in.Put(0, 1) },
		func(int, int) quorum.Outcome { in.Put(0, 2); return quorum.Won },
		func(_, n int) { late = append(late, n) })
	if !slices.Equal(late, []int{2}) {
		t.Errorf("late: %v, want [2]", late)
	}
}

// TestLateMayPut: no lock is held while late runs. It may take a while, and a
// node in memory may reply to what it does.
func TestLateMayPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late []int
		var in *quorum.Inbox[int]
		in = quorum.NewInbox(1, func(_, n int) {
			late = append(late, n)
			if n%10 < 2 {
				in.Put(0, n+1)
			}
			time.Sleep(ms) // in a bubble, a lock held here would stop the test
		})
		in.Put(0, 0)
		in.Put(0, 10)
		_, _ = in.Collect(t.Context(), nil, func(int, int) quorum.Outcome {
			in.Put(0, 20)
			return quorum.Won
		})
		in.Put(0, 30)
		if want := []int{10, 11, 12, 20, 21, 22, 30, 31, 32}; !slices.Equal(late, want) {
			t.Errorf("late: %v, want %v", late, want)
		}
	})
}

// TestGatherPanics: neither a panic in count nor one in ask strands a reply.
func TestGatherPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRound(func(node int) quorum.Outcome {
			if node == 1 {
				panic("count")
			}
			return quorum.Pending
		}, -1, -1, -1, 10*ms)
		if got := recovered(func() { _, _ = r.gather(t.Context(), nil) }); got != "count" {
			t.Errorf("recovered %v, want count's panic", got)
		}
		r.wantCounted(t, 0, 1)
		r.wantLate(t, 2)
		time.Sleep(time.Second)
		r.wantLate(t, 3)
	})
	synctest.Test(t, func(t *testing.T) {
		late := make(chan int, 10)
		got := recovered(func() {
			_, _ = quorum.Gather(t.Context(), nil, 3,
				func(node int, in *quorum.Inbox[int]) {
					if node == 2 {
						panic("ask")
					}
					time.AfterFunc(time.Duration(node)*ms, func() { in.Put(node, node) })
					if node == 1 {
						time.Sleep(ms / 2) // node 0 has replied, node 1 has not
					}
				},
				func(int, int) quorum.Outcome { t.Error("counted"); return quorum.Lost },
				func(node, _ int) { late <- node })
		})
		if got != "ask" {
			t.Errorf("recovered %v, want ask's panic", got)
		}
		if len(late) != 1 {
			t.Errorf("%d replies handed on by the panic, want 1", len(late))
		}
		time.Sleep(time.Second)
		if len(late) != 2 {
			t.Errorf("%d replies handed on, want 2", len(late))
		}
	})
}

func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestCollectTwicePanics(t *testing.T) {
	late := make(chan int, 1)
	in := quorum.NewInbox(1, func(node, _ int) { late <- node })
	in.Put(0, 0)
	count := func(int, int) quorum.Outcome { return quorum.Won }
	if o, err := in.Collect(t.Context(), nil, count); o != quorum.Won || err != nil {
		t.Fatalf("%v, %v, want Won", o, err)
	}
	if recovered(func() { _, _ = in.Collect(t.Context(), nil, count) }) == nil {
		t.Error("a second Collect did not panic")
	}
	in.Put(0, 0)
	if len(late) != 1 {
		t.Error("the inbox is open again")
	}
}

func TestGatherNilLate(t *testing.T) {
	in := quorum.NewInbox[int](-1, nil)
	in.Put(0, 0)
	in.Put(1, 1)
	if o, err := in.Collect(t.Context(), nil, func(int, int) quorum.Outcome { return quorum.Lost }); o != quorum.Lost || err != nil {
		t.Errorf("%v, %v, want Lost", o, err)
	}
	in.Put(2, 2)
}

// TestGatherNobody: with no nodes there is nothing to count, so only time ends
// it. Whoever calls Gather has to know that a vote of nobody is lost.
func TestGatherNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRound(wins(1, 1))
		if o, err := r.gather(t.Context(), after(ms)); o != quorum.Pending || err != nil {
			t.Errorf("%v, %v, want Pending", o, err)
		}
	})
}
