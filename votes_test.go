// Every way in which the nodes can vote: the outcome, the time it takes, and what
// is left behind.

package redlock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

const (
	voteTTL     = 10 * time.Second
	voteTimeout = time.Second
	voteLeft    = voteTTL - voteTTL/100 - 2*time.Millisecond // validity at the start
)

// A vote is one pattern, and in what order and how the nodes act on it.
type vote struct {
	*sim
	t       *testing.T
	op      redlocktest.Op
	pattern string
	order   []int         // of the answers
	tick    time.Duration // between them
	rng     *rand.Rand
}

// prepare makes every node act as the pattern says.
func (v *vote) prepare(name string) {
	for rank, i := range v.order {
		node, wait := v.Node(i), time.Duration(rank+1)*v.tick
		// Silent nodes have no turn.
		for _, j := range v.order[:rank] {
			if v.pattern[j] == silent {
				wait -= v.tick
			}
		}
		way := time.Duration(v.rng.Int64N(int64(wait) + 1))
		node.Delay(way, wait-way)
		switch v.pattern[i] {
		case taken:
			node.Set("lock:"+name, foreign, 0)
		case absent:
			node.Del("lock:" + name)
		case broken:
			node.FailWith(errors.New("OOM command not allowed"), redlock.Rejected, v.op)
		case silent:
			node.Delay(0, 0)
			switch v.rng.IntN(3) {
			case 0:
				node.DropReplies(true) // it does all it is told
			case 1:
				node.Blackhole(true)
			case 2:
				node.Pause() // it will
			}
		}
	}
}

// check compares what an operation returned, and when, with what it should.
func (v *vote) check(err error, after time.Duration) {
	v.t.Helper()
	b := ballot{op: v.op, nodes: len(v.pattern)}
	ends := b.ends(v.pattern) // if all answer at once
	answers := 0
	if v.tick > 0 {
		for _, i := range v.order {
			if v.pattern[i] != silent && !b.decided() {
				b = b.add(v.pattern[i])
				answers++
			}
		}
		ends = []ballot{b}
	}
	var want strings.Builder
	for _, b := range ends {
		at := time.Duration(answers) * v.tick
		if !b.decided() {
			at = voteTimeout
		}
		if after == at && b.fits(err) {
			return
		}
		want.WriteString(fmt.Sprintf("\n%+v after %v: %v", b, at, b.verdict()))
	}
	v.t.Errorf("after %v: %v; want one of%s", after, err, want.String())
}

// consistent checks a QuorumError by itself.
func (v *vote) consistent(err error) {
	v.t.Helper()
	e, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok {
		return
	}
	n := len(v.pattern)
	op, need := "lock", n/2+1
	switch v.op {
	case redlocktest.Extend:
		op = "extend"
	case redlocktest.Release:
		op, need = "unlock", n-n/2
	}
	if e.Op != op || e.Name != "x" || e.Need != need {
		v.t.Errorf("it is about %s %q and needs %d votes; want %s %q and %d", e.Op, e.Name, e.Need, op, "x", need)
	}
	if sum := e.Granted + e.Denied + e.Failed; sum > n {
		v.t.Errorf("%d votes of %d nodes", sum, n)
	}
	seen := map[string]bool{}
	for _, err := range e.Nodes.Errors {
		node, ok := err.(*redlock.NodeError)
		if !ok {
			v.t.Fatalf("a %T among the nodes' errors", err)
		}
		if seen[node.Node] || node.Op != string(v.op) {
			v.t.Errorf("node %q, op %q, seen before: %t", node.Node, node.Op, seen[node.Node])
		}
		seen[node.Node] = true
		i := slices.IndexFunc(v.all(), func(n *redlocktest.Node) bool { return n.Name() == node.Node })
		if timeout := errors.Is(err, redlock.ErrNodeTimeout); timeout != (v.pattern[i] == silent) {
			v.t.Errorf("%v: in the pattern it is %q", err, v.pattern[i])
		}
	}
	if v.op != redlocktest.Release && len(seen) != e.Denied+e.Failed {
		v.t.Errorf("errors of %d nodes for %d denied and %d failed", len(seen), e.Denied, e.Failed)
	}
}

// settled lets all that is under way end, well before any key expires, and
// checks that of the token nothing is left and nobody else's lock was touched.
func (v *vote) settled() {
	v.t.Helper()
	if v.rng.IntN(2) == 0 {
		time.Sleep(2 * voteTimeout)
	}
	v.heal()
	time.Sleep(2 * voteTimeout)
	for i, node := range v.all() {
		value, _, ok := node.Get("lock:x")
		if want := v.pattern[i] == taken; ok != want || ok && value != foreign {
			v.t.Errorf("node %d holds %q, %t", i, value, ok)
		}
	}
}

// votes runs f for patterns of the given letters: all there are if there are at
// most most, else as many picked at random. In half of the runs the answers come
// one by one, in a random order; in the others all at once.
func votes(t *testing.T, op redlocktest.Op, letters string, most int, f func(v *vote)) {
	t.Helper()
	for _, n := range []int{1, 2, 3, 4, 5, 7} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 0))
			total := 1
			for range n {
				total *= len(letters)
			}
			for k := range min(total, most) {
				if total > most {
					k = rng.IntN(total)
				}
				pattern := make([]byte, n)
				for i := range pattern {
					pattern[i] = letters[k%len(letters)]
					k /= len(letters)
				}
				for _, tick := range []time.Duration{0, time.Millisecond} {
					v := &vote{op: op, pattern: string(pattern), order: rng.Perm(n), tick: tick, rng: rng}
					synctest.Test(t, func(t *testing.T) {
						v.t = t
						v.sim = simulate(t, n, redlock.WithTTL(voteTTL), redlock.WithNodeTimeout(voteTimeout), redlock.WithoutRenewal())
						defer func() {
							if t.Failed() {
								t.Logf("seed %d: %s of %s, answers in the order %v, every %v", seed, op, pattern, v.order, tick)
							}
						}()
						f(v)
					})
				}
			}
		})
	}
}

func TestVotesLock(t *testing.T) {
	votes(t, redlocktest.Acquire, "otes", 1024, func(v *vote) {
		v.prepare("x")
		var l *redlock.Lease
		var err error
		after := took(func() { l, err = v.mutex("x").TryLock(v.t.Context()) })
		v.check(err, after)
		v.consistent(err)
		if err != nil {
			if l != nil {
				v.t.Error("a lease and an error")
			}
			v.settled()
			return
		}
		exactly(v.t, "remaining", l.Remaining(), voteLeft-after)
		time.Sleep(10 * time.Millisecond) // late grants are kept
		if got, least := v.holding(l), strings.Count(v.pattern, string(own)); got < least {
			v.t.Errorf("%d nodes hold the lock; %d granted it", got, least)
		}
		v.heal()
		noErr(v.t, l.Unlock(v.t.Context()))
		v.settled()
	})
}

func TestVotesExtend(t *testing.T) {
	votes(t, redlocktest.Extend, "otaes", 700, func(v *vote) {
		const pause = 3 * time.Second
		l := v.lock("x")
		time.Sleep(pause)
		v.prepare("x")
		var err error
		after := took(func() { err = l.Extend(v.t.Context()) })
		v.check(err, after)
		v.consistent(err)
		switch {
		case err == nil:
			exactly(v.t, "remaining", l.Remaining(), voteLeft-after)
		case errors.Is(err, redlock.ErrNoQuorum):
			noErr(v.t, l.Err())
			exactly(v.t, "remaining", l.Remaining(), voteLeft-pause-after)
		default:
			is(v.t, l.Err(), redlock.ErrLost)
			exactly(v.t, "remaining", l.Remaining(), 0)
		}
		time.Sleep(10 * time.Millisecond)
		for i, node := range v.all() {
			value, ttl, ok := node.Get("lock:x")
			switch v.pattern[i] {
			case own:
				if l.Err() == nil && ttl < voteTTL-voteTimeout-20*time.Millisecond {
					v.t.Errorf("node %d: not renewed, it has %v left", i, ttl)
				}
			case absent:
				// It is given back after a renewal that was won without it.
				if ok != (err == nil) || ok && !strings.HasPrefix(value, l.Token()) {
					v.t.Errorf("node %d holds %q, %t", i, value, ok)
				}
			case taken:
				if value != foreign || ttl >= 0 {
					v.t.Errorf("node %d: another's lock was changed to %q, %v", i, value, ttl)
				}
			}
		}
		v.heal()
		_ = l.Unlock(v.t.Context())
		v.settled()
	})
}

func TestVotesUnlock(t *testing.T) {
	votes(t, redlocktest.Release, "otaes", 700, func(v *vote) {
		l := v.lock("x")
		synctest.Wait() // for the other grants
		v.prepare("x")
		var err error
		after := took(func() { err = l.Unlock(v.t.Context()) })
		v.check(err, after)
		v.consistent(err)
		is(v.t, l.Err(), redlock.ErrUnlocked)
		is(v.t, l.Unlock(v.t.Context()), redlock.ErrNotHeld)
		v.settled()
	})
}
