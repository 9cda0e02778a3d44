// Who holds a lock, as Inspect tells it.

package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestInspect: the verdict for what is on five nodes.
func TestInspect(t *testing.T) {
	const long = time.Minute
	for name, c := range map[string]struct {
		setup func(s *sim)
		want  redlock.Holding
		token string
		left  time.Duration
	}{
		"nothing":    {func(*sim) {}, redlock.Free, "", 0},
		"a quorum":   {func(s *sim) { occupy("x", long, s.first(3)...) }, redlock.Held, foreign, long},
		"all":        {func(s *sim) { occupy("x", long, s.all()...) }, redlock.Held, foreign, long},
		"a minority": {func(s *sim) { occupy("x", long, s.first(2)...) }, redlock.Free, "", 0},
		"a split": {func(s *sim) {
			occupy("x", long, s.first(2)...)
			s.Node(2).Set("lock:x", "b", 0)
			s.Node(3).Set("lock:x", "b", 0)
		}, redlock.Free, "", 0},
		"a minority, silence": {func(s *sim) { occupy("x", long, s.first(2)...); s.Node(4).Blackhole(true) }, redlock.CannotTell, "", 0},
		"a quorum, silence":   {func(s *sim) { occupy("x", long, s.first(3)...); s.Node(3).Refuse(true); s.Node(4).Blackhole(true) }, redlock.Held, foreign, long},
		"silence":             {func(s *sim) { s.Node(3).Blackhole(true); s.Node(4).Blackhole(true) }, redlock.Free, "", 0},
		"silence of most":     {func(s *sim) { s.Node(2).Refuse(true); s.Node(3).Refuse(true); s.Node(4).Blackhole(true) }, redlock.CannotTell, "", 0},
		"the third to go": {func(s *sim) {
			occupy("x", long, s.first(2)...)
			occupy("x", time.Second, s.all()[2:4]...)
			occupy("x", 2*time.Second, s.Node(4))
		}, redlock.Held, foreign, 2 * time.Second},
		"for ever":              {func(s *sim) { occupy("x", 0, s.first(3)...) }, redlock.Held, foreign, -1},
		"for ever, but not all": {func(s *sim) { occupy("x", 0, s.first(2)...); occupy("x", long, s.Node(2)) }, redlock.Held, foreign, long},
		"a list":                {func(s *sim) { occupy("x", long, s.all()[1:3]...); s.Node(0).SetList("lock:x") }, redlock.CannotTell, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 5)
				c.setup(s)
				in, err := s.client.Inspect(t.Context(), "x")
				noErr(t, err)
				left := in.Remaining
				if c.left > 0 && left < 0 || (left-c.left).Abs() > time.Second+time.Millisecond || in.Holding != c.want || in.Token != c.token || in.Name != "x" || len(in.Nodes) != 5 {
					t.Errorf("%v, token %q for %v; want %v, %q for %v: %+v", in.Holding, in.Token, in.Remaining, c.want, c.token, c.left, in.Nodes)
				}
			})
		})
	}
}

// TestInspectLease: what it says of a lease, and of each node.
func TestInspectLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		l := s.lock("x")
		synctest.Wait()
		s.Node(4).Refuse(true)
		in, err := s.client.Inspect(t.Context(), "x")
		noErr(t, err)
		if in.Holding != redlock.Held || in.Token != l.Token() || in.FencingToken != l.FencingToken() || in.Remaining < l.Remaining() || in.Remaining > 10*time.Second {
			t.Errorf("%+v of a lease with %q, %d, %v", in, l.Token(), l.FencingToken(), l.Remaining())
		}
		for i, n := range in.Nodes {
			switch {
			case n.Node != s.Node(i).Name():
				t.Errorf("node %d is %q", i, n.Node)
			case i == 4:
				is(t, n.Err)
				if n.Err == nil || n.Token != "" {
					t.Errorf("of a node that refuses: %+v", n)
				}
			case n.Token != l.Token() || n.State.Counter != l.FencingToken() || n.Err != nil:
				t.Errorf("node %d: %+v", i, n)
			}
		}
		mustUnlock(t, l)
		synctest.Wait()
		in, err = s.client.Inspect(t.Context(), "x")
		noErr(t, err)
		if in.Holding != redlock.Free || in.Token != "" || in.FencingToken != 0 || in.Nodes[0].State.Counter != l.FencingToken() {
			t.Errorf("after it was unlocked: %+v", in)
		}
	})
}

// TestInspectEnds: what it waits for, and what it refuses.
func TestInspectEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3, redlock.WithNodeTimeout(time.Second))
		s.Node(0).Blackhole(true)
		begun := time.Now()
		in, err := s.client.Inspect(t.Context(), "x")
		noErr(t, err)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it took %v, with a node timeout of 1s", took)
		}
		is(t, in.Nodes[0].Err, redlock.ErrNodeTimeout)
		isNot(t, in.Nodes[0].Err, context.DeadlineExceeded)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = s.client.Inspect(ctx, "x")
		is(t, err, context.DeadlineExceeded)

		if _, err := s.client.Inspect(t.Context(), ""); err == nil {
			t.Error("an empty name was not refused")
		}
		if _, err := s.client.Inspect(nil, "x"); err == nil { //nolint:staticcheck // on purpose
			t.Error("a nil context was not refused")
		}
		noErr(t, s.client.Close())
		_, err = s.client.Inspect(t.Context(), "x")
		is(t, err, redlock.ErrClosed)
	})
}

// TestInspectMute: a node of another driver that cannot be asked is silent.
func TestInspectMute(t *testing.T) {
	nodes := redlocktest.New(3).Nodes()
	for i, n := range nodes {
		nodes[i] = mute{n}
	}
	in, err := openClient(t, nodes).Inspect(t.Context(), "x")
	noErr(t, err)
	if in.Holding != redlock.CannotTell || in.Nodes[0].Err == nil {
		t.Errorf("%+v", in)
	}
}

// TestInspectReal: on real servers, where a minority holds something else.
func TestInspectReal(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	c := f.open()
	l := mustLock(t, mutexOf(t, c, "m"))
	f.settled(5)
	ask(t, f.servers[0], "SET", "lock:m", foreign)
	ask(t, f.servers[1], "DEL", "lock:m")
	in, err := c.Inspect(t.Context(), "m")
	noErr(t, err)
	if in.Holding != redlock.Held || in.Token != l.Token() || in.FencingToken != l.FencingToken() || in.Remaining <= 0 || in.Remaining > 10*time.Second {
		t.Errorf("%+v of a lease with %q, %d", in, l.Token(), l.FencingToken())
	}
	if n := in.Nodes[0]; n.Token != foreign || n.State.Remaining >= 0 || n.Err != nil {
		t.Errorf("of another's key without an end: %+v", n)
	}
	if n := in.Nodes[1]; n.Token != "" || n.State.Remaining != 0 || n.State.Counter != l.FencingToken() || n.Err != nil {
		t.Errorf("of no key: %+v", n)
	}
	mustUnlock(t, l)
}

// TestInspectOtherOrder: a client that lists the nodes in another order sees the same
// holder, and a value that is empty holds the lock as well.
func TestInspectOtherOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 3)
		l := s.lock("x")
		synctest.Wait()
		n := s.Nodes()
		c, err := redlock.New([]redlock.Node{n[2], n[0], n[1]})
		noErr(t, err)
		defer func() { noErr(t, c.Close()) }()
		in, err := c.Inspect(t.Context(), "x")
		noErr(t, err)
		if in.Holding != redlock.Held || in.Token != l.Token() {
			t.Errorf("%+v", in)
		}
		for _, n := range s.all() {
			n.Set("lock:empty", "", 0)
		}
		in, err = c.Inspect(t.Context(), "empty")
		noErr(t, err)
		if in.Holding != redlock.Held || in.Token != "" {
			t.Errorf("of empty values: %+v", in)
		}
	})
}

// TestInspectionString: it says for each node what is there, and no token.
func TestInspectionString(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 5)
		l := s.lock("x")
		synctest.Wait()
		drop("x", s.Node(2))
		drop("x", s.Node(3))
		occupy("x", 0, s.Node(3))
		s.Node(4).Refuse(true)
		in, err := s.client.Inspect(t.Context(), "x")
		noErr(t, err)
		text := in.String()
		if strings.Contains(text, l.Token()) || strings.Contains(text, foreign) || strings.Contains(text, "\n") {
			t.Errorf("there is a token in it, or more than one line: %s", text)
		}
		for _, want := range []string{
			`lock "x": cannot tell; `, `node "node-0": held by holder 1 for 10s; `, `node "node-2": free; `,
			`node "node-3": held by holder 2 for ever; `, `connection refused`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s\nwants %q", text, want)
			}
		}
		s.Node(4).Heal()
		in, err = s.client.Inspect(t.Context(), "x")
		noErr(t, err)
		want := fmt.Sprintf(`lock "x": held by holder 1 for 10s, fencing token %d; node "node-0": held by holder 1 for 10s; `, l.FencingToken())
		if text := fmt.Sprint(in); !strings.HasPrefix(text, want) || strings.Contains(text, l.Token()) {
			t.Errorf("%s\nwant\n%s", text, want)
		}
		noErr(t, l.Unlock(t.Context()))
		in, err = s.client.Inspect(t.Context(), "x")
		noErr(t, err)
		if text := fmt.Sprint(in); !strings.HasPrefix(text, `lock "x": free; node "node-0": free; `) {
			t.Error(text)
		}
	})
}
