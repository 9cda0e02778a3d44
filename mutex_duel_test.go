// Two clients of each library that do the same, and a look at all keys after
// each step, for mutex_test.go.

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// The times are far above what a busy machine may lose, and far apart.
const (
	duelTTL     = 90 * time.Second
	agedTTL     = 30 * time.Second // what a lock is brought down to, so that a renewal shows
	foreignTTL  = 60 * time.Second
	duelTimeout = 20 * time.Second
	tolerance   = 15 * time.Second // between the TTLs of two keys that should be alike
)

// A duel is a pair of clients of each library that do the same, each pair on a
// key of its own.
type duel struct {
	t      *testing.T
	rng    *rand.Rand
	log    []string
	direct []*redis.Client // past both libraries

	client  *redlock.Client
	redsync *redsync.Redsync
	seen    map[string]int

	// Outcomes of calls to single nodes: how many redlock should report, and
	// how many it has. Those that follow a renewal count apart.
	calls, rearms atomic.Int64
	done, rearmed atomic.Int64

	said sync.Map // verdicts of the present attempt or extension, by "op node"

	ours, theirs string // keys
	players      [2]*player
	owners       map[string]string // of values: who, and which of its grants
}

// A player is one client of each library.
type player struct {
	name   string
	ours   *redlock.Mutex
	lease  *redlock.Lease
	theirs *redsync.Mutex
	grants int
	met    map[int]bool // nodes where this grant has met another token
}

func newDuel(t *testing.T, f *fleet, n int, seen map[string]int) *duel {
	t.Helper()
	d := &duel{t: t, seen: seen}
	var clients []redis.UniversalClient
	for i := range n {
		c := dial(t, f.addr(i), nil)
		d.direct = append(d.direct, c)
		clients = append(clients, c)
	}
	d.client = openClient(t, redlock.Redis(clients...),
		redlock.WithKeyPrefix(""), redlock.WithTTL(duelTTL), redlock.WithNodeTimeout(duelTimeout), redlock.WithoutRenewal(),
		redlock.WithMaxAttempts(2), redlock.WithBackoff(func(int, float64) time.Duration { return time.Millisecond }),
		redlock.WithTrace(&redlock.Trace{
			AttemptDone: func(e redlock.AttemptDone) {
				if e.Rounds == 0 { // it was only asked who has the lock
					return
				}
				d.calls.Add(int64(n))
				if e.Err != nil { // a release follows
					d.calls.Add(int64(n))
				}
			},
			AttemptStart: func(redlock.AttemptStart) { d.said.Clear() },
			NodeDone: func(e redlock.NodeDone) {
				switch e.Op {
				case "raise", "enlist", "delist": // as many as it takes
					return
				case "rearm":
					d.rearmed.Add(1)
					return
				}
				d.said.Store(e.Op+" "+e.Node, e.Verdict)
				d.done.Add(1)
			},
		}))
	d.redsync = redsync.New(pools(clients)...)
	return d
}

func pools(clients []redis.UniversalClient) []redsyncredis.Pool {
	pools := make([]redsyncredis.Pool, len(clients))
	for i, c := range clients {
		pools[i] = goredis.NewPool(c)
	}
	return pools
}

func (d *duel) play(seed uint64, steps int) {
	d.t.Helper()
	d.rng = rand.New(rand.NewPCG(seed, uint64(len(d.direct))))
	d.log = d.log[:0]
	suffix := fmt.Sprintf("-%d-%d", len(d.direct), seed)
	d.ours, d.theirs = "ours"+suffix, "theirs"+suffix
	d.owners = make(map[string]string)
	for i := range d.players {
		d.players[i] = &player{
			name: string(rune('A' + i)),
			ours: mutexOf(d.t, d.client, d.ours),
			theirs: d.redsync.NewMutex(d.theirs, redsync.WithExpiry(duelTTL), redsync.WithTries(2),
				redsync.WithTimeoutFactor(float64(duelTimeout)/float64(duelTTL)), redsync.WithRetryDelay(time.Millisecond)),
		}
	}
	for range steps {
		p := d.players[d.rng.IntN(len(d.players))]
		switch d.rng.IntN(20) {
		case 0, 1, 2, 3, 4:
			d.lock(p, "try", p.ours.TryLock, p.theirs.TryLockContext)
		case 5, 6:
			d.lock(p, "lock", p.ours.Lock, p.theirs.LockContext)
		case 7, 8, 9, 10:
			d.extend(p)
		case 11, 12:
			d.unlock(p)
		case 13, 14, 15:
			d.onSome("del", func(c redis.Pipeliner, key string) { c.Del(d.t.Context(), key) })
		case 16:
			d.onSome("let expire", func(c redis.Pipeliner, key string) { c.PExpire(d.t.Context(), key, time.Millisecond) })
			time.Sleep(3 * time.Millisecond)
		case 17, 18:
			d.onSome("age", func(c redis.Pipeliner, key string) { c.PExpire(d.t.Context(), key, agedTTL) })
		case 19:
			d.onSome("foreign", func(c redis.Pipeliner, key string) { c.Set(d.t.Context(), key, foreign, foreignTTL) })
		}
		d.compare()
		if d.t.Failed() {
			return
		}
	}
}

func (d *duel) count(what string, ok bool) { d.seen[fmt.Sprintf("%s: %t", what, ok)]++ }

func (d *duel) note(format string, args ...any) { d.log = append(d.log, fmt.Sprintf(format, args...)) }

func (d *duel) lock(p *player, what string, ours func(context.Context) (*redlock.Lease, error), theirs func(context.Context) error) {
	lease, err := ours(d.t.Context())
	err2 := theirs(d.t.Context())
	d.note("%s %s: %v | %v", p.name, what, err, err2)
	d.count(what, err == nil)
	if (err == nil) != (err2 == nil) || err != nil && !errors.Is(err, redlock.ErrTaken) {
		d.t.Errorf("%s %s: ours %v, redsync %v", p.name, what, err, err2)
	}
	d.quiet()
	if err != nil || err2 != nil {
		return
	}
	p.lease = lease
	p.grants++
	grant := fmt.Sprintf("%s#%d", p.name, p.grants)
	for i := range d.direct {
		d.owners[fmt.Sprintf("%s.%d", lease.Token(), i)] = grant
	}
	d.owners[p.theirs.Value()] = grant
	p.met = make(map[int]bool)
	d.meet(p, "acquire")
}

// meet remembers where p has met another token, and returns where it met none.
func (d *duel) meet(p *player, op string) (absent []int) {
	for i, c := range d.direct {
		switch v, _ := d.said.Load(op + " " + c.Options().Addr); v {
		case redlock.Taken:
			p.met[i] = true
		case redlock.Absent:
			absent = append(absent, i)
		}
	}
	return absent
}

func (d *duel) extend(p *player) {
	d.said.Clear()
	held := p.lease.Err() == nil
	err := p.lease.Extend(d.t.Context())
	ok, err2 := p.theirs.ExtendContext(d.t.Context())
	d.note("%s extend: %v | %t, %v", p.name, err, ok, err2)
	d.count("extend", err == nil)
	if held {
		d.calls.Add(int64(len(d.direct)))
	}
	switch {
	case (err == nil) != ok:
		d.t.Errorf("%s extend: ours %v, redsync %t %v", p.name, err, ok, err2)
	case ok:
		d.restored(p)
		return
	case !errors.Is(err, redlock.ErrTaken) && !errors.Is(err, redlock.ErrNotHeld):
		d.t.Errorf("%s extend: %v", p.name, err)
	}
	if held {
		// On purpose: our lease is lost for good, and what a minority of the
		// nodes still holds of it is released. redsync's keys stay.
		is(d.t, p.lease.Err(), redlock.ErrLost)
		d.calls.Add(int64(len(d.direct)))
		_, _ = p.theirs.UnlockContext(d.t.Context())
	}
}

// restored brings redsync to where we are after a renewal. On purpose, we give
// the lock back to a node that has none, once a quorum has renewed it without
// that node; but not where another token was seen or the fencing counter is ahead,
// since another holder may have had a quorum meanwhile. redsync leaves the
// node out, or with an option takes the lock whatever happened (M18).
func (d *duel) restored(p *player) {
	d.answered()
	for _, i := range d.meet(p, "extend") {
		if p.met[i] {
			continue
		}
		d.rearms.Add(1)
		counter, err := d.direct[i].Get(d.t.Context(), "redlock:fence:{"+d.ours+"}"+d.ours).Int64()
		noErr(d.t, err)
		if counter > p.lease.FencingToken() {
			p.met[i] = true // the refusal says so
		} else {
			noErr(d.t, d.direct[i].SetNX(d.t.Context(), d.theirs, p.theirs.Value(), duelTTL).Err())
		}
	}
}

func (d *duel) unlock(p *player) {
	first := p.lease != nil && !errors.Is(p.lease.Err(), redlock.ErrUnlocked)
	had := d.held(p)
	err := p.lease.Unlock(d.t.Context())
	ok, err2 := p.theirs.UnlockContext(d.t.Context())
	d.note("%s unlock: %v | %t, %v", p.name, err, ok, err2)
	d.count("unlock", err == nil)
	if first {
		d.calls.Add(int64(len(d.direct)))
		p.lease = nil // a second Unlock is for lease_test.go
	}
	switch {
	case ok && err != nil, had == 0 && err == nil:
		d.t.Errorf("%s unlock, with %d nodes holding it: ours %v, redsync %t %v", p.name, had, err, ok, err2)
	case err != nil && !errors.Is(err, redlock.ErrNotHeld):
		d.t.Errorf("%s unlock: %v", p.name, err)
	}
	// Where less than a quorum held it, redsync says false. We say which of two
	// things the first answers meant: that it was gone before, or that it is
	// gone now.
}

// held returns how many nodes hold p's lock.
func (d *duel) held(p *player) int {
	if p.lease == nil {
		return 0
	}
	count := 0
	for i, c := range d.direct {
		if v, _ := c.Get(d.t.Context(), d.ours).Result(); v == fmt.Sprintf("%s.%d", p.lease.Token(), i) {
			count++
		}
	}
	return count
}

// onSome does the same to both keys on some of the nodes.
func (d *duel) onSome(what string, f func(c redis.Pipeliner, key string)) {
	nodes := d.rng.Perm(len(d.direct))[:d.rng.IntN(len(d.direct)+1)]
	slices.Sort(nodes)
	d.note("%s on %v", what, nodes)
	for _, i := range nodes {
		_, err := d.direct[i].Pipelined(d.t.Context(), func(c redis.Pipeliner) error {
			f(c, d.ours)
			f(c, d.theirs)
			return nil
		})
		noErr(d.t, err)
	}
}

// answered waits until each call to a node has had its outcome, and had it once.
func (d *duel) answered() {
	d.t.Helper()
	if !eventually(duelTimeout, func() bool { return d.done.Load() == d.calls.Load() }) {
		d.t.Fatalf("%d outcomes of %d calls", d.done.Load(), d.calls.Load())
	}
}

// quiet waits until nothing is under way.
func (d *duel) quiet() {
	d.t.Helper()
	d.answered()
	if !eventually(duelTimeout, func() bool { return d.rearmed.Load() == d.rearms.Load() }) {
		d.t.Fatalf("%d locks given back, want %d", d.rearmed.Load(), d.rearms.Load())
	}
}

// compare looks at all nodes.
func (d *duel) compare() {
	d.t.Helper()
	d.quiet()
	for i, c := range d.direct {
		var value [2]*redis.StringCmd
		var left [2]*redis.DurationCmd
		_, err := c.Pipelined(d.t.Context(), func(c redis.Pipeliner) error {
			for j, key := range []string{d.ours, d.theirs} {
				value[j], left[j] = c.Get(d.t.Context(), key), c.PTTL(d.t.Context(), key)
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			d.t.Fatal(err)
		}
		owner := func(j int) string {
			v := value[j].Val()
			if o, ok := d.owners[v]; ok {
				return o
			}
			return v
		}
		if a, b := owner(0), owner(1); a != b {
			d.t.Errorf("node %d: ours is held by %q, redsync's by %q", i, a, b)
		}
		if gap := (left[0].Val() - left[1].Val()).Abs(); gap > tolerance {
			d.t.Errorf("node %d: ours has %v left, redsync's %v", i, left[0].Val(), left[1].Val())
		}
	}
}
