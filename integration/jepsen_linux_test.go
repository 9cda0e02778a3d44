// Eight client processes, five nodes and random faults, in the manner of Jepsen:
// what each holder saw is written down, and judged afterwards on one clock.

package integration_test

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
)

var (
	jepsenLength = flag.Duration("jepsen", 0, "how long each Jepsen test goes on (0: a few seconds)")
	jepsenSeed   = flag.Uint64("jepsen.seed", 0, "what the faults of Jepsen tests are drawn from (0: any)")
)

const (
	jepsenNodes   = 5
	jepsenClients = 8
)

// TestJepsen keeps within what docs/safety.md assumes: then one holds the lock at a
// time, whatever happens. The nodes keep what they have answered, or they forget it
// when they are killed and a crash guard keeps them out. The short form has only the
// former: the guard's times are too long for it.
//
//	go test -run TestJepsen -v -timeout 20m -jepsen=5m -jepsen.seed=1 .
func TestJepsen(t *testing.T) {
	seed := drawSeed(t)
	t.Run("nodes", func(t *testing.T) {
		for _, kind := range []struct {
			name  string
			mode  redisproc.Persistence
			guard time.Duration
		}{
			{"that remember", redisproc.AOFAlways, 0},
			{"that forget", redisproc.None, guard},
		} {
			if testing.Short() && kind.guard > 0 {
				continue
			}
			t.Run(kind.name, func(t *testing.T) {
				t.Parallel()
				o := orders{TTL: 2 * time.Second, Guard: kind.guard, Renew: true, Workers: 2}
				length, enough := 25*time.Second, 40
				if testing.Short() {
					o.TTL, o.Workers, length, enough = 1500*time.Millisecond, 1, 3*time.Second, 20
				}
				j := startJepsen(t, seed, o, kind.mode)
				history := j.run(length, enough, j.nodeProcesses(), slices.Concat(j.partitions(), j.cuts()),
					j.clientFaults(0, 1, 2, 3), j.clientFaults(4, 5, 6, 7))
				j.judge(history)
				j.judgeExclusion(history)
				j.controls(history)
			})
		}
	})
	if pids := children(t); len(pids) > 0 {
		t.Errorf("processes are left: %v", pids)
	}
}

// drawSeed returns the seed of a test, which it prints.
func drawSeed(t *testing.T) uint64 {
	t.Helper()
	seed := *jepsenSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-jepsen.seed=%d", seed)
	return seed
}

// A jepsen is one run.
type jepsen struct {
	*testing.T
	orders  // for all clients
	seed    uint64
	servers []*redisproc.Server
	links   [jepsenClients][]*netfault.Proxy // of each client to each node
	clients [jepsenClients]*place
	store   *store
	dir     string
	stop    chan struct{} // closed when no more faults are wanted

	mu     sync.Mutex
	faults map[string]int
}

// startJepsen starts nodes and clients. The orders lack what differs from client
// to client, and where things are.
func startJepsen(t *testing.T, seed uint64, o orders, mode redisproc.Persistence) *jepsen {
	t.Helper()
	j := &jepsen{
		T: t, orders: o, seed: seed, store: openStore(t), dir: t.TempDir(),
		stop: make(chan struct{}), faults: make(map[string]int),
	}
	for i := range 4 + j.random(0).IntN(4*o.Workers+1) {
		j.Names = append(j.Names, "name-"+strconv.Itoa(i))
	}
	j.servers = redisproc.StartN(t, jepsenNodes, redisproc.Persist(mode))
	for i := range j.clients {
		for _, s := range j.servers {
			j.links[i] = append(j.links[i], netfault.New(t, s.Addr()))
		}
		j.clients[i] = &place{j: j, number: i}
		if err := j.clients[i].start(); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// journal returns the file in which the clients of a place write down their holds.
func (j *jepsen) journal(place int) string { return filepath.Join(j.dir, strconv.Itoa(place)) }

// random returns a source of its own for each who draws from the seed.
func (j *jepsen) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(j.seed, who)) }

// run lets the nemeses loose until the time is over and there was enough of
// everything, and then lets the clients finish.
func (j *jepsen) run(length time.Duration, enough int, nemeses ...[]fault) []hold {
	j.Helper()
	if *jepsenLength > 0 {
		length = *jepsenLength
	}
	const patience = 2 * time.Minute // far more than it takes, but on a busy machine
	if !eventually(patience, func() bool { return j.store.visits.Load() > 0 }) {
		j.Fatal("no client ever gets a lock")
	}
	start := time.Now()
	var kinds []string
	for _, deck := range nemeses {
		for _, f := range deck {
			kinds = append(kinds, f.name)
		}
	}
	var raging sync.WaitGroup
	for i, deck := range nemeses {
		raging.Go(func() { j.rage(j.random(uint64(i+1)), deck) })
	}
	time.Sleep(length) // the work goes on meanwhile
	complete := eventually(patience, func() bool { return int(j.store.visits.Load()) >= enough && len(j.missing(kinds)) == 0 })
	close(j.stop)
	raging.Wait()
	took := time.Since(start)
	if !complete {
		j.Errorf("that was no test: %d grants, and nothing of %q", j.store.visits.Load(), j.missing(kinds))
	}

	for _, p := range j.clients {
		_ = p.input.Close()
	}
	for _, p := range j.clients {
		select {
		case <-p.ended:
		case <-time.After(patience):
			j.Errorf("client %d does not finish", p.number)
			_ = p.process.Signal(syscall.SIGQUIT) // it tells where it is
			<-p.ended
		}
	}
	j.clean()
	var history []hold
	for _, p := range j.clients {
		history = append(history, readHolds(j.T, j.journal(p.number))...)
	}
	lost, wait := 0, time.Duration(0)
	for _, h := range history {
		wait = max(wait, time.Duration(h.Ret-h.Call))
		if h.Lost {
			lost++
		}
	}
	j.Logf("%d grants of %d names in %v, %d leases lost, longest wait %v; faults: %v",
		len(history), len(j.Names), took.Round(time.Millisecond), lost, wait.Round(time.Millisecond), j.faults)
	return history
}

// clean checks that no lock is left soon after all clients have gone. Those that were
// killed leave theirs, which are never to live for more than a TTL, and a node may
// still have a backlog.
func (j *jepsen) clean() {
	j.Helper()
	for i, s := range j.servers {
		for _, key := range s.Keys() {
			text, err := s.Do("PTTL", key)
			ms, e := strconv.Atoi(text)
			if lives := time.Duration(ms) * time.Millisecond; strings.HasPrefix(key, "lock:") && (err != nil || e != nil || ms == -1 || lives > j.TTL) {
				j.Errorf("%s on node %d lives for another %q ms (%v), and leases for %v", key, i, text, err, j.TTL)
			}
		}
		var left []string
		if !eventually(10*time.Second, func() bool {
			left = slices.DeleteFunc(s.Keys(), func(key string) bool { return !strings.HasPrefix(key, "lock:") })
			return len(left) == 0
		}) {
			j.Errorf("node %d still has %q", i, left)
		}
	}
}
