// Requests that arrive late: overtaken by their own release, or once more, as a copy
// on another connection.

package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/script"
)

// executed returns how many scripts a server has run.
func (r *rig) executed(server int) int {
	r.Helper()
	info, err := r.servers[server].Do("INFO", "commandstats")
	if err != nil {
		r.Fatal(err)
	}
	n := 0
	for _, command := range []string{"eval", "evalsha"} {
		_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
		digits, _, _ := strings.Cut(rest, ",")
		calls, _ := strconv.Atoi(digits) // none is no calls
		n += calls
	}
	return n
}

// ran waits until a server has run more scripts than before.
func (r *rig) ran(server, before int) {
	r.Helper()
	if !eventually(10*time.Second, func() bool { return r.executed(server) > before }) {
		r.Fatalf("server %d has run nothing more", server)
	}
}

// M8: two of three nodes get an acquire later than the release that followed it on
// another connection. redsync leaves its key there until the TTL ends.
func TestProxyOvertaken(t *testing.T) {
	t.Parallel()
	const ttl, nodeTimeout = 20 * time.Second, 300 * time.Millisecond
	r := newRig(t, 3)
	late := []int{1, 2}
	// overtake returns when all is over. The first request for key is held back until
	// gone says that the release has come.
	overtake := func(p path[*netfault.Proxy], key string, attempt func() error, gone func(server, before int)) error {
		t.Helper()
		holds := map[int]*netfault.Hold{}
		before := map[int]int{}
		for _, i := range late {
			before[i] = r.executed(i)
			holds[i] = p[i].HoldRequests(netfault.First(1, netfault.Containing(key)), 0)
		}
		err := attempt()
		for _, i := range late {
			<-holds[i].Held()
			gone(i, before[i])
			holds[i].Release()
		}
		return err
	}

	theirs := r.wire()
	m := r.peer(theirs.addrs(), heedful).NewMutex("theirs", redsync.WithExpiry(ttl))
	err := overtake(theirs, "theirs", m.TryLock, r.ran)
	if !eventually(10*time.Second, func() bool { return len(r.keys("theirs")) == len(late) }) {
		t.Logf("redsync no longer leaves its keys: %q", r.keys("theirs"))
	}
	pttl, _ := r.servers[1].Do("PTTL", "theirs")
	t.Logf("redsync: %s; keys left on %q, for %s ms", brief(err), r.keys("theirs"), pttl)

	ours := r.wire()
	c := r.open(ours.addrs(), redlock.WithTTL(ttl), redlock.WithNodeTimeout(nodeTimeout))
	mutex := mutexOf(t, c, "ours")
	held := map[int]int{}
	err = overtake(ours, "lock:ours", func() error { _, err := mutex.TryLock(t.Context()); return err }, func(i, before int) {
		r.ran(i, before)
		held[i] = r.executed(i)
	})
	is(t, err, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
	isNot(t, err, redlock.ErrTaken)
	for _, i := range late {
		r.ran(i, held[i]) // the late one
	}
	time.Sleep(2 * nodeTimeout)
	r.free("lock:ours", 0)
	t.Logf("redlock: %v; keys left on %q", err, r.keys("lock:ours"))
	r.unlock(r.lock(mutex))
}

// A copier keeps all requests of a path that may set a lock or raise a counter, and
// repeats them on connections of their own.
type copier struct {
	*rig
	mu       sync.Mutex
	requests []request
}

type request struct {
	server int
	bytes  []byte
}

func (r *rig) copier(p path[*netfault.Proxy]) *copier {
	c := &copier{rig: r}
	for i := range p {
		p[i].Tap(func(_ int, dir netfault.Direction, b []byte) {
			if dir == netfault.ToServer && (isA(&script.Acquire, b) || isA(&script.Raise, b)) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.requests = append(c.requests, request{i, bytes.Clone(b)})
			}
		})
	}
	return c
}

// isA matches a request by the name that EVALSHA knows its script by.
func isA(s *script.Script, request []byte) bool { return bytes.Contains(request, []byte(s.SHA)) }

func (c *copier) seen() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.requests)
}

// repeat has a server execute a request again, and returns the verdict.
func (c *copier) repeat(q request) (verdict string, err error) {
	conn, err := net.Dial("tcp", c.servers[q.server].Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write(q.bytes); err != nil {
		return "", err
	}
	reply := bufio.NewReader(conn)
	head, err := reply.ReadString('\n')
	if err != nil || head[0] != '$' {
		return "", fmt.Errorf("%q, %w", head, err)
	}
	verdict, err = reply.ReadString(' ')
	return strings.TrimSpace(verdict), err
}

// Hazard 14: an acquire whose reply got lost comes once more, on another connection,
// after its attempt was given up and released. It leaves no key.
func TestProxyLateCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	p := r.wire()
	c := r.open(p.addrs(), redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(time.Second))
	copies := r.copier(p)
	for i := range p {
		p[i].DropReplyTo(netfault.First(1, func(b []byte) bool { return isA(&script.Acquire, b) }))
	}
	m := mutexOf(t, c, "m")
	_, err := m.TryLock(t.Context())
	is(t, err, redlock.ErrNoQuorum)
	isNot(t, err, redlock.ErrTaken)
	if !eventually(10*time.Second, func() bool { return len(r.keys("redlock:tomb:")) == len(copies.seen()) }) {
		t.Fatalf("tombstones on %q", r.keys("redlock:tomb:"))
	}
	requests := copies.seen()
	if len(requests) < 2 || len(requests) > 3 { // two lost replies are enough to give up
		t.Errorf("%d acquires were sent, want at most one to each node", len(requests))
	}
	r.free("lock:m", 0)
	for _, q := range requests {
		if _, err := copies.repeat(q); err != nil {
			t.Error(err)
		}
	}
	r.free("lock:m", 0)
	l, err := m.TryLock(t.Context()) // no copy is in its way
	if err != nil {
		t.Fatal(err)
	}
	r.unlock(l)
}

// Copies of whatever was sent come at random moments, some of which take the lock for
// a lease that has long ended. No two leases get the same fencing token, and one that
// was asked for after another was granted gets a larger one.
func TestProxyCopies(t *testing.T) {
	t.Parallel()
	const callers = 3
	each := 150
	if testing.Short() {
		each = 40
	}
	r := newRig(t, 3)
	p := r.wire()
	c := r.open(p.addrs(), redlock.WithNodeTimeout(50*time.Millisecond), redlock.WithoutRenewal(),
		redlock.WithBackoff(func(_ int, random float64) time.Duration { return time.Duration(random * float64(5*time.Millisecond)) }))
	// A copy that takes the lock is in everybody's way until the TTL ends.
	m, err := c.NewMutex("m", redlock.WithTTL(60*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	copies := r.copier(p)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()

	var mu sync.Mutex
	tokens := map[int64]bool{}
	var largest int64
	var working, copying sync.WaitGroup
	for range callers {
		working.Go(func() {
			for range each {
				mu.Lock()
				before := largest
				mu.Unlock()
				l, err := m.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				token := l.FencingToken()
				mu.Lock()
				if tokens[token] || token <= before {
					t.Errorf("token %d, which is new: %v; %d was granted before it was asked for", token, !tokens[token], before)
				}
				tokens[token] = true
				largest = max(largest, token)
				mu.Unlock()
				_ = l.Unlock(ctx) // it may have expired
			}
		})
	}
	over := make(chan struct{})
	granted := 0
	copying.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(rand.N(10 * time.Millisecond)):
			}
			requests := copies.seen()
			if len(requests) == 0 {
				continue
			}
			age := 1 + rand.IntN(min(len(requests), 60))
			verdict, err := copies.repeat(requests[len(requests)-age])
			if err != nil {
				t.Error(err)
				return
			}
			if verdict == "1" && age > 20 { // whose lease has most likely ended
				granted++
			}
		}
	})
	working.Wait()
	close(over)
	copying.Wait()
	if len(tokens) != callers*each || granted == 0 {
		t.Errorf("%d tokens of %d leases; %d copies took the lock", len(tokens), callers*each, granted)
	}
	t.Logf("%d leases, each with a token of its own; %d copies took the lock meanwhile", callers*each, granted)
	r.free("lock:m", 10*time.Second)
}
