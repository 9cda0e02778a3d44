//go:build unix

// How contenders in processes of their own wait for each other on real servers, with
// redsync and a herd beside them: the same servers, other names, default options.

package redlock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

const waitEnv = "REDLOCK_TEST_WAIT" // addresses: run as a contender

var waitKinds = []string{"redlock", "redsync", "herd"}

// A waitJob is what a contender process is told to do: from Start on, in so many
// goroutines, to lock Name, hold it and unlock it, once and then until End.
type waitJob struct {
	Kind, Name string
	Goroutines int
	Start, End int64 // UnixNano
	Hold       time.Duration
}

// A waitTurn is one grant. Both ends are UnixNano.
type waitTurn struct {
	Wait      time.Duration
	Got, Gone int64
}

type waitReport struct {
	Attempts, Looks int64
	Turns           []waitTurn
}

// A waitSide is a client of each library.
type waitSide struct {
	t               testing.TB
	ours            *redlock.Client
	theirs          *redsync.Redsync
	herd            herd
	attempts, looks atomic.Int64
}

func newWaitSide(t testing.TB, addrs []string) *waitSide {
	t.Helper()
	var clients []redis.UniversalClient
	for _, addr := range addrs {
		clients = append(clients, dial(t, addr, nil))
	}
	s := &waitSide{t: t, theirs: redsync.New(pools(clients)...), herd: herd{clients: clients}}
	s.ours = openClient(t, redlock.Redis(clients...), redlock.WithTrace(&redlock.Trace{AttemptDone: func(e redlock.AttemptDone) {
		if e.Rounds > 0 {
			s.attempts.Add(1)
			return
		}
		s.looks.Add(1)
	}}))
	for _, kind := range waitKinds {
		for range 5 {
			s.lock(kind, fmt.Sprintf("warm-%s-%d", kind, os.Getpid()))()
			time.Sleep(5 * time.Millisecond)
		}
	}
	return s
}

// lock locks, however long that takes, and returns what unlocks.
func (s *waitSide) lock(kind, name string) (unlock func()) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if kind == "redlock" {
		l, err := mutexOf(s.t, s.ours, name).Lock(ctx)
		if err != nil {
			panic(err)
		}
		return func() { _ = l.Unlock(context.Background()) }
	}
	if kind == "herd" {
		unlock, err := s.herd.lock(ctx, name)
		if err != nil {
			panic(err)
		}
		return unlock
	}
	for {
		m := s.theirs.NewMutex(name)
		if err := m.LockContext(ctx); err == nil {
			return func() { _, _ = m.Unlock() }
		} else if ctx.Err() != nil { // it also gives up after 32 tries
			panic(err)
		}
	}
}

func (s *waitSide) do(j waitJob) (r waitReport) {
	attempts, looks := s.attempts.Load(), s.looks.Load()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range j.Goroutines {
		wg.Go(func() {
			time.Sleep(time.Until(time.Unix(0, j.Start)))
			for once := true; once || time.Now().UnixNano() < j.End; once = false {
				began := time.Now()
				unlock := s.lock(j.Kind, j.Name)
				turn := waitTurn{Wait: time.Since(began), Got: time.Now().UnixNano()}
				time.Sleep(j.Hold)
				unlock()
				turn.Gone = time.Now().UnixNano()
				mu.Lock()
				r.Turns = append(r.Turns, turn)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	r.Attempts, r.Looks = s.attempts.Load()-attempts, s.looks.Load()-looks
	return r
}

// TestWaitContender is a contender, in a process that another test starts. It ends
// when its input does.
func TestWaitContender(t *testing.T) {
	addrs := os.Getenv(waitEnv)
	if addrs == "" {
		t.Skip("not a test of its own: see TestHandover")
	}
	jobs := make(chan waitJob, 10)
	go func() {
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			var j waitJob
			if json.Unmarshal(s.Bytes(), &j) == nil {
				jobs <- j
			}
		}
		os.Exit(0)
	}()
	side := newWaitSide(t, strings.Split(addrs, ","))
	fmt.Printf("READY %d\n", os.Getpid())
	for j := range jobs {
		answer, err := json.Marshal(side.do(j))
		noErr(t, err)
		fmt.Printf("DONE %s\n", answer)
	}
}

func (c *child) tell(j waitJob) {
	c.t.Helper()
	noErr(c.t, json.NewEncoder(c.in).Encode(j))
}

func (c *child) report() (r waitReport) {
	c.t.Helper()
	noErr(c.t, json.Unmarshal([]byte(c.expect("DONE")), &r))
	return r
}

// startContenders starts servers, n contenders, and the parent's own client.
func startContenders(t *testing.T, n int) (*waitSide, []*child) {
	t.Helper()
	f := startFleet(t, 5)
	var addrs []string
	for i := range f.servers {
		addrs = append(addrs, f.addr(i))
	}
	var children []*child
	for range n {
		children = append(children, startChild(t, "TestWaitContender", waitEnv, strings.Join(addrs, ",")))
	}
	for _, c := range children {
		c.expect("READY")
	}
	return newWaitSide(t, addrs), children
}

// all lets all contenders begin at once, and returns what they did together.
func all(children []*child, j waitJob, lasting time.Duration) (r waitReport, start int64) {
	begin := time.Now().Add(200 * time.Millisecond)
	j.Start, j.End = begin.UnixNano(), begin.Add(lasting).UnixNano()
	for _, c := range children {
		c.tell(j)
	}
	for _, c := range children {
		one := c.report()
		r.Attempts, r.Looks = r.Attempts+one.Attempts, r.Looks+one.Looks
		r.Turns = append(r.Turns, one.Turns...)
	}
	return r, j.Start
}

const mixed = "from redsync to redlock"

// TestHandover is how long it takes from the call of the release in one process until
// the lock is held in another.
func TestHandover(t *testing.T) {
	side, children := startContenders(t, 1)
	n := inShort(30, 100)
	p50 := make(map[string]time.Duration)
	for _, kind := range append(waitKinds, mixed) {
		holder, holds, name := kind, kind, kind
		if kind == mixed { // on the same key
			holder, kind, holds, name = "redsync", "redlock", "lock:mixed", "mixed"
		}
		var took []time.Duration
		for range n {
			unlock := side.lock(holder, holds)
			children[0].tell(waitJob{Kind: kind, Name: name, Goroutines: 1})
			time.Sleep(40 * time.Millisecond)
			start := time.Now().UnixNano()
			unlock()
			r := children[0].report()
			took = append(took, time.Duration(r.Turns[0].Got-start))
		}
		slices.Sort(took)
		if holder != kind {
			kind = mixed
		}
		p50[kind] = took[n/2]
		t.Logf("%s: %d hand-overs: p50 %v p90 %v p99 %v max %v", kind, n, took[n/2], took[n*9/10], took[(n*99-1)/100], took[n-1])
	}
	if p50["redlock"] >= p50["redsync"]/4 {
		t.Errorf("a hand-over takes %v, and redsync's %v", p50["redlock"], p50["redsync"])
	}
	if p50[mixed] >= 2*p50["redsync"] {
		t.Errorf("waiting for redsync takes %v, and redsync %v", p50[mixed], p50["redsync"])
	}
}

// TestWaitTogether is how long it takes to serve many who come at the same instant.
func TestWaitTogether(t *testing.T) {
	const each, hold = 4, time.Millisecond
	side, children := startContenders(t, 8)
	var trips []time.Duration // two of them each
	for range 101 {
		start := time.Now()
		side.lock("redlock", "alone")()
		trips = append(trips, time.Since(start))
		time.Sleep(time.Millisecond)
	}
	slices.Sort(trips)
	n := each * len(children)
	ideal := time.Duration(n) * (hold + trips[50])
	rounds := inShort(3, 9)
	took := make(map[string][]time.Duration)
	for range rounds {
		for _, kind := range waitKinds {
			r, start := all(children, waitJob{Kind: kind, Name: kind, Goroutines: each, Hold: hold}, 0)
			if len(r.Turns) != n {
				t.Errorf("%s: %d of %d were served", kind, len(r.Turns), n)
			}
			var last time.Duration
			for _, turn := range r.Turns {
				last = max(last, time.Duration(turn.Gone-start))
			}
			took[kind] = append(took[kind], last)
		}
	}
	for _, kind := range waitKinds {
		slices.Sort(took[kind])
		p50, worst := took[kind][rounds/2], took[kind][rounds-1]
		t.Logf("%s: %d served in p50 %v, max %v: %.2f and %.2f times the ideal %v (two round trips: %v)", kind, n,
			p50, worst, float64(p50)/float64(ideal), float64(worst)/float64(ideal), ideal, trips[50])
	}
	if took["redlock"][rounds/2] >= took["redsync"][rounds/2] {
		t.Error("that is not better than redsync")
	}
}

// TestWaitFair is how evenly those are served who come again and again.
func TestWaitFair(t *testing.T) {
	_, children := startContenders(t, 16)
	ratio := make(map[string]float64)
	for _, kind := range waitKinds {
		r, _ := all(children, waitJob{Kind: kind, Name: kind, Goroutines: 1, Hold: time.Millisecond}, time.Duration(inShort(2, 10))*time.Second)
		var sum, longest time.Duration
		for _, turn := range r.Turns {
			sum += turn.Wait
			longest = max(longest, turn.Wait)
		}
		n := len(r.Turns)
		mean := sum / time.Duration(n)
		ratio[kind] = float64(longest) / float64(mean)
		attempts := float64(r.Attempts) / float64(n)
		t.Logf("%s: %d grants, wait mean %v longest %v (%.1f times), attempts per grant %.2f, looks %.2f", kind, n, mean, longest,
			ratio[kind], attempts, float64(r.Looks)/float64(n))
		if attempts > 2 {
			t.Errorf("%s: %.2f attempts per grant", kind, attempts)
		}
	}
	if ratio["redlock"] > max(6, ratio["redsync"]) {
		t.Errorf("the longest wait is %.1f times the mean, and redsync's %.1f times", ratio["redlock"], ratio["redsync"])
	}
}
