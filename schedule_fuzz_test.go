// Schedules of faults and calls that a fuzzer makes up, in a bubble.

package redlock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlocktest"
)

// A schedule is what happens to two clients of one lock, and to their nodes. No fault in
// it takes away what a node has acknowledged: that would be allowed to break the lock.
type schedule struct {
	*sim
	mutexes [2]*redlock.Mutex

	mu      sync.Mutex
	cancels []context.CancelFunc // of attempts under way
	leases  []*redlock.Lease     // that were granted, in that order
	group   sync.WaitGroup
}

// step does what two bytes say, and lets some time pass.
func (s *schedule) step(kind, arg byte) {
	n := s.Node(int(arg) % s.Len())
	d := []time.Duration{0, time.Millisecond, 7 * time.Millisecond, 60 * time.Millisecond}[arg>>4%4]
	switch kind % 16 {
	case 0, 1, 2:
		s.try(s.mutexes[arg%2])
	case 3:
		s.cancel()
	case 4:
		s.each(func(l *redlock.Lease) { _ = l.Unlock(context.Background()) })
	case 5:
		s.each(func(l *redlock.Lease) { _ = l.Extend(context.Background()) })
	case 6:
		n.Delay(d, 0)
	case 7:
		n.Delay(0, d)
	case 8:
		n.LoseReplies(1 + int(arg>>6))
	case 9:
		n.DropReplies(arg&0x80 != 0)
	case 10:
		n.Blackhole(arg&0x80 != 0)
	case 11:
		n.Refuse(arg&0x80 != 0)
	case 12:
		n.Pause()
	case 13:
		n.Resume()
	case 14:
		n.Late(d)
	case 15:
		n.Restart(true)
	}
	time.Sleep([]time.Duration{0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}[kind>>6])
	synctest.Wait()
}

// try makes an attempt that somebody may cancel.
func (s *schedule) try(m *redlock.Mutex) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.cancels = append(s.cancels, cancel)
	s.mu.Unlock()
	s.group.Go(func() {
		l, err := m.TryLock(ctx)
		if err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.granted(l)
	})
}

// granted checks a lease that was just granted. The caller holds s.mu.
func (s *schedule) granted(l *redlock.Lease) {
	have := 0
	for _, n := range s.all() {
		agreed := false
		for _, c := range n.Calls() {
			ofIt := strings.HasPrefix(c.Value, l.Token()+".") && c.Verdict == redlock.Granted
			agreed = agreed || ofIt && c.Counter == l.FencingToken() && (c.Op == redlocktest.Acquire || c.Op == redlocktest.Raise)
		}
		if agreed {
			have++
		}
	}
	if have < quorum.Size(s.Len()) {
		s.t.Errorf("granted by %d nodes with the token %d", have, l.FencingToken())
	}
	for _, other := range s.leases {
		if other.FencingToken() >= l.FencingToken() {
			s.t.Errorf("the token %d comes after %d", l.FencingToken(), other.FencingToken())
		}
		if other.Err() == nil && l.Err() == nil {
			s.t.Errorf("two hold the lock, %d and %d", other.FencingToken(), l.FencingToken())
		}
	}
	s.leases = append(s.leases, l)
}

func (s *schedule) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.cancels {
		cancel()
	}
	s.cancels = nil
}

// each does something with the leases that are held, and does not wait for it.
func (s *schedule) each(do func(l *redlock.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.Err() == nil {
			s.group.Go(func() { do(l) })
		}
	}
}

// FuzzSchedule: whatever happens to attempts, renewals and releases, and in which order,
// a lock is granted by a quorum that agrees on its token, to one at a time, with rising
// tokens; and when all have let go and the nodes answer, no key is left.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{0, 0, 64, 1, 4, 0})                                          // lock, try, unlock
	f.Add([]byte{6, 0x20, 6, 0x21, 0, 0, 64, 1, 3, 0, 128, 1})                // slow nodes, cancelled, tried again
	f.Add([]byte{14, 0x30, 14, 0x31, 0, 0, 192, 0, 3, 0, 192, 1, 4, 0})       // acquires that come after their releases
	f.Add([]byte{8, 0, 8, 1, 0, 0, 0, 1, 64, 0, 4, 0})                        // lost replies
	f.Add([]byte{12, 0, 12, 1, 0, 0, 192, 0, 13, 0, 13, 1, 64, 1, 4, 1})      // stopped and resumed
	f.Add([]byte{0, 0, 15, 0, 15, 1, 5, 0, 64, 1, 4, 0, 64, 1})               // restarted with all data
	f.Add([]byte{10, 0x80, 10, 0x81, 0, 0, 128, 0, 10, 0, 10, 1, 64, 1})      // no quorum for a while
	f.Add([]byte{7, 0x20, 7, 0x21, 7, 0x22, 0, 0, 0, 1, 0, 0, 192, 1})        // split votes
	f.Add([]byte{0, 0, 11, 0x80, 11, 0x81, 4, 0, 192, 0, 11, 0, 11, 1, 0, 1}) // a release that is repeated
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) {
			nodes := 3
			if len(program) > 0 && program[0]&0x20 != 0 {
				nodes = 5
			}
			opts := []redlock.Option{redlock.WithTTL(time.Second), redlock.WithNodeTimeout(100 * time.Millisecond)}
			s := &schedule{sim: simulate(t, nodes, opts...)}
			other, err := redlock.New(s.Nodes(), opts...)
			noErr(t, err)
			s.mutexes = [2]*redlock.Mutex{s.sim.mutex("x"), mutexOf(t, other, "x")}
			for i := 0; i+1 < min(len(program), 80); i += 2 {
				s.step(program[i], program[i+1])
			}
			s.cancel()
			s.heal()
			s.group.Wait()
			s.each(func(l *redlock.Lease) { _ = l.Unlock(context.Background()) })
			s.group.Wait()
			time.Sleep(300 * time.Millisecond) // two node timeouts, and a delay or two
			s.noLocks()
			noErr(t, other.Close())
		})
	})
}
