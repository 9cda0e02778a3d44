// Sixteen processes lock one name while nodes are killed, and lose what they knew.

package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// go-redis reports servers that are down, which these tests make them be.
func init() { redis.SetLogger(silence{}) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

const (
	stormEnv  = "REDLOCK_TEST_STORM" // run as a process of the storm
	processes = 16

	clockBound = 3 * time.Second // the least that WithClockBound takes

	// guard is how long a node that has lost its counters has to stay out of votes:
	// the clock bound, the step of the floor under the counters, and nothing for
	// the error between clocks, for all nodes here have the same.
	guard = clockBound + 1050*time.Millisecond
)

// TestFencingStormProcess is one of the processes. Their number of acquisitions,
// the file for the history and the addresses of the nodes come by environment.
func TestFencingStormProcess(t *testing.T) {
	orders := strings.Split(os.Getenv(stormEnv), ",")
	if len(orders) < 3 {
		t.Skip("not a test of its own: see TestFencingStorm")
	}
	times, err := strconv.Atoi(orders[0])
	if err != nil {
		t.Fatal(err)
	}
	var clients []redis.UniversalClient
	for _, addr := range orders[2:] {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: addr}))
	}
	client, err := redlock.New(redlock.Redis(clients...), redlock.WithTTL(clockBound), redlock.WithClockBound(clockBound),
		redlock.WithBackoff(func(_ int, random float64) time.Duration {
			return time.Duration(random * float64(150*time.Millisecond))
		}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := client.NewMutex("storm")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(orders[1])
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(file)
	for range times {
		time.Sleep(rand.N(100 * time.Millisecond))
		call := monotonic()
		lease, err := m.Lock(t.Context())
		ret := monotonic()
		if err != nil {
			t.Fatal(err)
		}
		if err := (acquisition{call: call, ret: ret, token: lease.FencingToken()}).writeTo(out); err != nil {
			t.Fatal(err)
		}
		_ = lease.Unlock(t.Context()) // fails when too few nodes are there
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = client.Close() // fails if it cannot clean up on a node that is down
}

// TestFencingStorm: tokens are unique and in the order of acquisitions that did
// not overlap. One node of three at a time is in trouble: it is killed and comes
// back at once with all that it knew, or it loses everything and stays out for as
// long as a crash guard would keep it out.
func TestFencingStorm(t *testing.T) {
	times := 200
	if testing.Short() {
		times = 25
	}
	// Each write is handed to the system before it is answered, and so outlives the
	// process. To wait for the disk as well would only take time.
	keep := redisproc.Args("--save", "", "--appendonly", "yes", "--appendfsync", "no")
	s := storm{T: t, servers: redisproc.StartN(t, 3, keep), stop: make(chan struct{})}
	var addrs []string
	for _, server := range s.servers {
		p := netfault.New(t, server.Addr())
		s.proxies = append(s.proxies, p)
		addrs = append(addrs, p.Addr())
	}
	dir := t.TempDir()
	var running sync.WaitGroup
	start := time.Now()
	for i := range processes {
		path := filepath.Join(dir, strconv.Itoa(i))
		running.Go(func() { s.process(fmt.Sprintf("%d,%s,%s", times, path, strings.Join(addrs, ","))) })
	}
	var nemesis sync.WaitGroup
	nemesis.Go(s.rage)
	running.Wait()
	took := time.Since(start)
	close(s.stop)
	nemesis.Wait()

	var history []acquisition
	for i := range processes {
		history = append(history, readHistory(t, filepath.Join(dir, strconv.Itoa(i)), i)...)
	}
	if len(history) != processes*times {
		t.Fatalf("%d acquisitions, want %d", len(history), processes*times)
	}
	t.Logf("%d acquisitions by %d processes in %v; %d nodes killed, %d emptied, %d without their scripts",
		len(history), processes, took.Round(time.Millisecond), s.kills, s.losses, s.forgets)
	if s.kills < 3 || s.losses < 1 || s.forgets < 3 {
		t.Error("that was no storm")
	}
	start = time.Now()
	judge(t, history)
	t.Logf("judged in %v", time.Since(start).Round(time.Millisecond))

	first, last := earliest(history), latest(history)
	bites(t, "two tokens swapped", history, func(h []acquisition) {
		h[first].token, h[last].token = h[last].token, h[first].token
	})
	bites(t, "a token given twice", history, func(h []acquisition) { h[last].token = h[first].token })
	bites(t, "neighbours swapped", history, func(h []acquisition) {
		a, b := neighbours(h)
		h[a].token, h[b].token = h[b].token, h[a].token
	})
}

// A storm is what happens to the nodes.
type storm struct {
	*testing.T
	servers []*redisproc.Server
	proxies []*netfault.Proxy
	stop    chan struct{}

	kills, losses, forgets int
}

// process runs one process to its end.
func (s *storm) process(orders string) {
	runtime.LockOSThread() // see reexec
	defer runtime.UnlockOSThread()
	cmd := reexec(s.Context(), "TestFencingStormProcess", stormEnv+"="+orders)
	cmd.Args = append(cmd.Args, "-test.timeout=150s")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Errorf("a process: %v\n%s", err, out)
	}
}

// sleep reports whether the storm goes on after d.
func (s *storm) sleep(d time.Duration) bool {
	select {
	case <-s.stop:
		return false
	case <-time.After(d):
		return true
	}
}

// rage brings trouble to one node at a time, so that the others are a quorum.
func (s *storm) rage() {
	for s.sleep(rand.N(400 * time.Millisecond)) {
		for range 3 {
			s.kill(rand.N(len(s.servers)))
			if !s.sleep(rand.N(400 * time.Millisecond)) {
				return
			}
		}
		s.lose(rand.N(len(s.servers)))
	}
}

// kill kills a node, which comes back with all its data, and makes one forget the
// scripts.
func (s *storm) kill(node int) {
	_ = s.servers[node].Kill() // an error has failed the test
	s.sleep(rand.N(200 * time.Millisecond))
	_ = s.servers[node].Restart()
	s.kills++
	if _, err := s.servers[rand.N(len(s.servers))].Do("SCRIPT", "FLUSH"); err != nil {
		s.Error(err)
	}
	s.forgets++
}

// lose makes a node lose everything, and keeps it out from before that until the
// guard's time has passed.
func (s *storm) lose(node int) {
	_ = s.proxies[node].Refuse(true)
	if !s.alone(s.servers[node]) {
		s.Error("connections of clients are still open")
	}
	if _, err := s.servers[node].Do("FLUSHALL"); err != nil {
		s.Error(err)
	}
	time.Sleep(guard)
	if n, err := s.servers[node].Do("DBSIZE"); err != nil || n != "0" {
		s.Errorf("the node has %s keys, %v, although nobody can reach it", n, err)
	}
	_ = s.proxies[node].Refuse(false)
	s.losses++
}

// alone waits until a server has executed all that clients had sent.
func (s *storm) alone(server *redisproc.Server) bool {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		list, err := server.Do("CLIENT", "LIST")
		if err == nil && strings.Count(list, "\n") == 1 {
			return true
		}
	}
	return false
}

func earliest(h []acquisition) int {
	best := 0
	for i := range h {
		if h[i].ret < h[best].ret {
			best = i
		}
	}
	return best
}

func latest(h []acquisition) int {
	best := 0
	for i := range h {
		if h[i].call > h[best].call {
			best = i
		}
	}
	return best
}

// neighbours returns an acquisition, and the first one that began after it had
// returned: the smallest disorder that there can be.
func neighbours(h []acquisition) (a, b int) {
	a = len(h) / 2
	b = latest(h)
	for i := range h {
		if h[i].call > h[a].ret && h[i].call < h[b].call {
			b = i
		}
	}
	return a, b
}
