// A client of the Jepsen tests, which is a process.

package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/rpc"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

const jepsenEnv = "REDLOCK_TEST_JEPSEN" // orders: run as a client

// orders are what a client is to do.
type orders struct {
	Client, Life int // its place, and how many clients have been there before
	Seed         uint64
	Nodes, Names []string
	Store        string
	Journal      string
	TTL, Guard   time.Duration
	Renew        bool
	Workers      int // that compete with one another and with all others
}

// A hold is one grant and what the holder knew of it. Times are those of
// [monotonic].
type hold struct {
	ID        int64
	Name      string
	Call, Ret int64 // of Lock
	Token     int64
	Until     int64 // when it last asked and was told that it holds the lock; 0 if never
	Lost      bool  // it was told that the lease is over before it had unlocked
	Written   bool  // its write was acknowledged by the plain store
	Accepted  bool  // and by the fenced one
	Refused   bool  // the fenced store refused it although it held the lock even afterwards
}

// A contender is a client at work.
type contender struct {
	*testing.T
	orders
	store   *rpc.Client
	journal *os.File
	mutexes []*redlock.Mutex
	short   []*redlock.Mutex // the same without renewal
	holds   atomic.Int64
}

// TestJepsenClient is a client. It works until its input ends, unless it is killed.
func TestJepsenClient(t *testing.T) {
	text := os.Getenv(jepsenEnv)
	if text == "" {
		t.Skip("not a test of its own: see TestJepsen")
	}
	c := contender{T: t}
	var err error
	if err = json.Unmarshal([]byte(text), &c.orders); err != nil {
		t.Fatal(err)
	}
	if c.store, err = rpc.Dial("unix", c.Store); err != nil {
		t.Fatal(err)
	}
	// A line is handed to the system before the holder goes on, and so outlives it.
	if c.journal, err = os.OpenFile(c.Journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		t.Fatal(err)
	}
	var clients []redis.UniversalClient
	for _, addr := range c.Nodes {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: addr}))
	}
	opts := []redlock.Option{redlock.WithTTL(c.TTL), redlock.WithNodeTimeout(min(c.TTL/2, time.Second)), redlock.WithClockBound(clockBound)}
	if c.Guard > 0 {
		opts = append(opts, redlock.WithCrashGuard(c.Guard))
	}
	client, err := redlock.New(redlock.Redis(clients...), opts...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Names {
		c.mutexes = append(c.mutexes, mutexOf(t, client, name))
		m, err := client.NewMutex(name, redlock.WithoutRenewal())
		if err != nil {
			t.Fatal(err)
		}
		c.short = append(c.short, m)
	}

	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var wg sync.WaitGroup
	for i := range c.Workers {
		random := rand.New(rand.NewPCG(c.Seed, uint64(c.Client*1000+c.Life*10+i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				c.turn(ctx, random)
			}
		})
	}
	wg.Wait()
	_ = client.Close() // fails if a connection to a node has lost bytes, and so is dead
	for _, rc := range clients {
		_ = rc.Close()
	}
	if !eventually(10*time.Second, func() bool { return ours() == 0 }) {
		t.Errorf("%d goroutines after Close", ours())
	}
}

// turn locks a name, adds to its set, and unlocks.
func (c *contender) turn(ctx context.Context, random *rand.Rand) {
	name := random.IntN(len(c.Names)) * random.IntN(2) // the first one is in demand
	length := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
	renewed := c.Renew && random.IntN(2) == 0
	if c.Renew && random.IntN(40) == 0 { // to the end of the lease, or beyond the TTL
		length = c.TTL
		if renewed {
			length = time.Duration(random.Int64N(int64(3 * c.TTL / 2)))
		}
	}
	m := c.short[name]
	if renewed {
		m = c.mutexes[name]
	}
	h := hold{ID: int64(c.Client*1000+c.Life)<<32 | c.holds.Add(1), Name: m.Name(), Call: monotonic()}
	lease, err := m.Lock(ctx)
	h.Ret = monotonic()
	if err != nil {
		if ctx.Err() == nil {
			c.Error(err)
		}
		return
	}
	h.Token = lease.FencingToken()
	c.work(lease, &h, renewed, length)
	c.held(lease, &h) // for the last time
	unlock, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = lease.Unlock(unlock) // fails if the lease is lost, or too few nodes are there
	if err := lease.Err(); !errors.Is(err, redlock.ErrUnlocked) && !errors.Is(err, redlock.ErrLost) {
		c.Errorf("after Unlock: %v", err)
	}
}

// work is the critical section.
func (c *contender) work(lease *redlock.Lease, h *hold, renewed bool, length time.Duration) {
	if !c.held(lease, h) {
		return
	}
	v := Visit{Client: c.Client, ID: h.ID, Name: h.Name, Token: h.Token, Renewed: renewed}
	var now Content
	if err := c.store.Call("Store.Read", &v, &now); err != nil {
		c.Error(err)
		return
	}
	const look = 50 * time.Millisecond
	for ; length > look && c.held(lease, h); length -= look {
		time.Sleep(look)
	}
	time.Sleep(min(length, look))
	if !c.held(lease, h) {
		return
	}
	v.Fenced, v.Plain = now.Fenced, now.Plain
	accepted := false
	if err := c.store.Call("Store.Write", &v, &accepted); err != nil {
		c.Error(err)
		return
	}
	h.Written, h.Accepted = true, accepted
	h.Refused = c.held(lease, h) && !accepted
}

// held asks the lease, and notes what it says. The clock is read first: if the
// process is stopped between the two, the lease is known to have held at the
// earlier time.
func (c *contender) held(lease *redlock.Lease, h *hold) bool {
	now := monotonic()
	if err := lease.Err(); err == nil {
		h.Until = now
	} else {
		h.Lost = true
		if lease.Context().Err() == nil {
			c.Errorf("the lease has ended (%v), and its context has not", err)
		}
	}
	line, err := json.Marshal(h)
	if err != nil {
		c.Error(err)
	}
	if _, err := c.journal.Write(append(line, '\n')); err != nil {
		c.Error(err)
	}
	return !h.Lost
}
