// How many round trips fencing costs, counted where the commands pass.

package redlock_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/script"
)

// A tally counts the commands on their way to the nodes.
type tally struct {
	mu     sync.Mutex
	ops    [5]map[string]int // by node and script
	raised map[string]int    // nodes, by the value that they were raised for
}

var scriptNames = map[string]*script.Script{
	"acquire": &script.Acquire, "raise": &script.Raise, "extend": &script.Extend,
	"rearm": &script.Rearm, "release": &script.Release, "take": &script.Take,
}

func (c *tally) watch(f *fleet) {
	c.raised = make(map[string]int)
	for i, p := range f.proxies {
		c.ops[i] = make(map[string]int)
		p.Tap(func(_ int, dir netfault.Direction, b []byte) {
			if dir == netfault.ToServer {
				c.add(i, b)
			}
		})
	}
}

func (c *tally) add(node int, request []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	op := "other"
	for name, s := range scriptNames {
		if runs(request, s) {
			op = name
		}
	}
	c.ops[node][op]++
	if op == "raise" && bytes.Contains(request, []byte(script.Raise.SHA)) { // and not once more by its source
		// *8, then a length and a text for each of evalsha, its name, 2, the lock,
		// the counter, the value.
		value := string(bytes.Split(request, []byte("\r\n"))[12])
		token, _, _ := strings.Cut(value, ".")
		c.raised[token]++
	}
}

func (c *tally) count(node int, op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ops[node][op]
}

// TestFencingOneRound: where nobody is in the way, fencing costs no round trip of
// its own: each node gets one acquire, and no raise, whether it is one name again
// and again or a new one each time. The proxies before the nodes and the trace
// must say the same.
func TestFencingOneRound(t *testing.T) {
	times, want := 10_000, 99.0
	if testing.Short() {
		times, want = 1_000, 97 // a moment in which the machine is busy weighs more
	}
	for name, of := range map[string]func(i int) string{
		"one name":   func(int) string { return "m" },
		"many names": func(i int) string { return fmt.Sprint("m", i) },
	} {
		t.Run(name, func(t *testing.T) { testOneRound(t, times, want, of) })
	}
}

func testOneRound(t *testing.T, times int, want float64, name func(int) string) {
	f := startProxied(t, 5)
	var attempts, won int
	rounds := make(map[int64]int) // by fencing token
	c := f.open(redlock.WithTrace(&redlock.Trace{AttemptDone: func(d redlock.AttemptDone) {
		attempts++
		if d.Err == nil {
			won++
			rounds[d.Token] = d.Rounds
		}
	}}))
	f.warm(c)
	attempts, won = 0, 0
	clear(rounds)
	var seen tally
	seen.watch(f)

	owners := make(map[string]int64, times) // fencing tokens by owner token
	for i := range times {
		l := mustLock(t, mutexOf(t, c, name(i)))
		if _, twice := rounds[l.FencingToken()]; !twice || len(rounds) != i+1 {
			t.Fatalf("the trace knows %d tokens after %d locks, this one: %v", len(rounds), i+1, twice)
		}
		owners[l.Token()] = l.FencingToken()
		mustUnlock(t, l)
	}
	noErr(t, c.Close()) // what was on its way has arrived

	several := 0 // round trips
	for _, n := range rounds {
		if n > 1 {
			several++
		}
	}
	// By the proxies. Two stragglers may be raised to a token that is granted; more
	// than two were raised for it, even if another grant came before their answers.
	raised, needless := 0, 0
	for token, n := range seen.raised {
		fence, granted := owners[token]
		switch {
		case !granted: // of an attempt that failed
		case rounds[fence] > 1:
			raised++
		case n > 2:
			needless++
		}
	}
	share := 100 * float64(won-several-needless) / float64(won)
	t.Logf("%d attempts, %d won, %.2f %% in one round trip; %d took more, %d nearly; %d other raises",
		attempts, won, share, several, needless, len(seen.raised)-raised-needless)
	if raised != several {
		t.Errorf("by the trace %d took more round trips, by the nodes %d", several, raised)
	}
	if share < want {
		t.Errorf("%.2f %% of the grants took one round trip, want %v %%", share, want)
	}
	if (attempts-won)*100 > attempts {
		t.Errorf("%d of %d attempts have failed", attempts-won, attempts)
	}
	for i := range f.servers {
		// A straggler that a fast holder overtakes is not sent at all, nor one that waits
		// for the release before it, or for a trip that it missed. On a machine that is
		// busy with other things that has been every other one.
		if n := seen.count(i, "acquire"); n > attempts || n*4 < attempts {
			t.Errorf("node %d got %d acquires for %d attempts", i, n, attempts)
		}
		if n := seen.count(i, "raise"); float64(n)*100 > float64(attempts)*(100-want) {
			t.Errorf("node %d got %d raises for %d attempts", i, n, attempts)
		}
		extra := maps.Clone(seen.ops[i])
		for _, op := range []string{"acquire", "raise", "release", "other"} { // other: greetings of connections
			delete(extra, op)
		}
		if len(extra) > 0 || seen.count(i, "other") > 300 {
			t.Errorf("node %d got %v", i, seen.ops[i])
		}
	}
}

// TestFencingTwoRounds: nodes with different counters are brought to agree on one,
// which takes a second round trip, and the trace says so.
func TestFencingTwoRounds(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	var done redlock.AttemptDone
	c := f.open(redlock.WithTrace(&redlock.Trace{AttemptDone: func(d redlock.AttemptDone) { done = d }}))
	f.warm(c)
	f.stagger("m")
	l := mustLock(t, mutexOf(t, c, "m"))
	if done.Rounds != 2 || done.Token != l.FencingToken() {
		t.Errorf("the trace says %d round trips and token %d, the lease %d", done.Rounds, done.Token, l.FencingToken())
	}
	f.agree(l, 2)

	l2 := mustLock(t, mutexOf(t, c, "n"))
	if done.Rounds != 1 {
		t.Errorf("without a difference it took %d round trips", done.Rounds)
	}
	mustUnlock(t, l2)
	mustUnlock(t, l)
}

// stagger gives each node another counter, and each a higher one than a client
// asks for.
func (f *fleet) stagger(name string) {
	f.t.Helper()
	for i, s := range f.servers {
		ahead := 3*time.Second + time.Duration(i)*time.Second
		ask(f.t, s, "SET", counterKey(name), fmt.Sprint(clockOf(f.t, s)+ahead.Microseconds()), "EX", "36000")
	}
}

// agree waits until at least n nodes have the lease's value and its token.
func (f *fleet) agree(l *redlock.Lease, n int) {
	f.t.Helper()
	have := 0
	if !eventually(10*time.Second, func() bool {
		have = 0
		for i, s := range f.servers {
			if ask(f.t, s, "GET", "lock:"+l.Name()) == fmt.Sprintf("%s.%d", l.Token(), i) && counter(f.t, s, l.Name()) == l.FencingToken() {
				have++
			}
		}
		return have >= n
	}) {
		f.t.Errorf("%d nodes agree with token %d, want %d", have, l.FencingToken(), n)
	}
}

// TestFencingLateGrant: a node that grants after the decision, with a lower counter
// than the token, is raised to it: it can stand in for one that is lost.
func TestFencingLateGrant(t *testing.T) {
	t.Parallel()
	f := startProxied(t, 3)
	c := f.open()
	f.warm(c)
	ahead := fmt.Sprint(clockOf(t, f.servers[0]) + (5 * time.Second).Microseconds())
	for _, s := range f.servers[:2] {
		ask(t, s, "SET", counterKey("m"), ahead, "EX", "36000")
	}
	hold := f.proxies[2].HoldRequests(isAcquire, 0)
	l := mustLock(t, mutexOf(t, c, "m"))
	if want := ahead; fmt.Sprint(l.FencingToken()-1) != want {
		t.Errorf("token %d, want %s and one", l.FencingToken(), want)
	}
	if n := counter(t, f.servers[2], "m"); n != 0 {
		t.Fatalf("node 2 has counted to %d already", n)
	}
	hold.Release()
	f.agree(l, 3)
	mustUnlock(t, l)
}

// TestFencingTokenStays: a lease has one token however long it lives.
func TestFencingTokenStays(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	c := f.open(redlock.WithTTL(time.Second), redlock.WithRenewal(50*time.Millisecond))
	f.warm(c)
	l := mustLock(t, mutexOf(t, c, "m"))
	f.agree(l, 3)
	token := l.FencingToken()
	if token <= 0 {
		t.Errorf("token %d", token)
	}
	for range 10 {
		noErr(t, l.Extend(t.Context()))
		time.Sleep(60 * time.Millisecond)
		if l.FencingToken() != token {
			t.Fatalf("token %d has become %d", token, l.FencingToken())
		}
	}
	f.agree(l, 3)
	mustUnlock(t, l)
	if l.FencingToken() != token {
		t.Errorf("token %d has become %d with Unlock", token, l.FencingToken())
	}
	next := mustLock(t, mutexOf(t, c, "m"))
	if next.FencingToken() <= token {
		t.Errorf("token %d, the next one %d", token, next.FencingToken())
	}
	mustUnlock(t, next)
}
