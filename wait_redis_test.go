// Waiting on real servers: connections that end, servers that forget, and what is
// left on them.

package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
)

const realPoll = time.Second // the default backoff, and much for a machine that is busy

// answerOf sends a command to a server and returns the answer.
func answerOf(t testing.TB, s *redisproc.Server, args ...string) string {
	t.Helper()
	answer, err := s.Do(args...)
	noErr(t, err)
	return answer
}

// listeners returns how many channels are listened to on all servers.
func (f *fleet) listeners() int {
	n := 0
	for _, s := range f.servers {
		n += strings.Count(answerOf(f.t, s, "PUBSUB", "CHANNELS"), "redlock:wake:")
	}
	return n
}

// standing returns how many stand in lines on all servers.
func (f *fleet) standing() int {
	n := 0
	for _, s := range f.servers {
		for _, key := range s.Keys() {
			if strings.HasPrefix(key, "redlock:queue:") {
				length, err := strconv.Atoi(answerOf(f.t, s, "ZCARD", key))
				noErr(f.t, err)
				n += length
			}
		}
	}
	return n
}

// commands returns how many scripts all servers have run.
func (f *fleet) commands() int {
	n := 0
	for _, s := range f.servers {
		n += scripts(f.t, s)
	}
	return n
}

// attended waits until somebody stands in line, and listens, on all servers.
func (f *fleet) attended() {
	f.t.Helper()
	if !eventually(10*time.Second, func() bool { return f.listeners() == len(f.servers) && f.standing() == len(f.servers) }) {
		f.t.Fatalf("%d listen, %d stand in line", f.listeners(), f.standing())
	}
}

// deserted checks that two seconds later nobody listens or stands in line.
func (f *fleet) deserted() {
	f.t.Helper()
	if !eventually(2500*time.Millisecond, func() bool { return f.listeners() == 0 && f.standing() == 0 }) {
		f.t.Errorf("%d still listen, %d still stand in line", f.listeners(), f.standing())
	}
	f.noLocks(time.Second)
}

// TestWaitRedisHandOver: a call does it, where polling would take an hour.
func TestWaitRedisHandOver(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			f := startFleet(t, n)
			opts := []redlock.Option{redlock.WithTTL(3 * time.Hour), pauseOf(time.Hour)}
			held := mustLock(t, f.mutex("x\x00/{\xff}", opts...))
			f.settled(n)
			w := await(t.Context(), f.mutex("x\x00/{\xff}", opts...))
			f.attended()
			start := time.Now()
			mustUnlock(t, held)
			mustUnlock(t, w.within(t, start, time.Second))
			f.deserted()
		})
	}
}

// TestWaitRedisFaults: whatever ends the subscriptions or the lines, the waiter gets
// the lock as fast as by polling, and is not busy meanwhile.
func TestWaitRedisFaults(t *testing.T) {
	t.Parallel()
	kill := func(f *fleet) {
		for range 20 {
			for _, s := range f.servers {
				answerOf(f.t, s, "CLIENT", "KILL", "TYPE", "pubsub")
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	for name, fault := range map[string]func(*fleet){
		"killed": kill,
		"restarted": func(f *fleet) {
			noErr(f.t, f.servers[0].Restart())
			time.Sleep(2 * time.Second)
		},
		"flushed": func(f *fleet) {
			for range 20 {
				answerOf(f.t, f.servers[2], "FLUSHALL")
				time.Sleep(100 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 3)
			before := make([]int, 3)
			held := mustLock(t, f.mutex("x", redlock.WithoutRenewal(), redlock.WithTTL(time.Minute)))
			f.settled(3)
			w := await(t.Context(), f.mutex("x"))
			f.attended()
			for i, s := range f.servers {
				before[i] = strings.Count(answerOf(t, s, "CLIENT", "LIST"), "id=")
			}
			sent, start := f.commands(), time.Now()
			fault(f)
			if sent, most := f.commands()-sent, int(time.Since(start).Seconds()*3*30); sent > most {
				t.Errorf("%d scripts, want at most %d", sent, most)
			}
			for i, s := range f.servers {
				if n := strings.Count(answerOf(t, s, "CLIENT", "LIST"), "id="); n > before[i]+2 {
					t.Errorf("node %d has %d connections, it had %d", i, n, before[i])
				}
			}
			start = time.Now()
			mustUnlock(t, held)
			mustUnlock(t, w.within(t, start, realPoll))
			f.deserted()
		})
	}
}

// TestWaitRedisCancelled: those who leave, at random, leave nothing on the servers.
func TestWaitRedisCancelled(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	held := mustLock(t, f.mutex("x"))
	var mu sync.Mutex
	var late []time.Duration
	var wg sync.WaitGroup
	for i := range 3 {
		m := f.mutex("x")
		for j := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+20*j)*time.Millisecond)
			defer cancel()
			wg.Go(func() {
				_, err := m.Lock(ctx)
				end, _ := ctx.Deadline()
				mu.Lock()
				defer mu.Unlock()
				late = append(late, time.Since(end))
				is(t, err, context.DeadlineExceeded)
			})
		}
	}
	wg.Wait()
	slices.Sort(late)
	t.Logf("Lock returns p50 %v, at most %v after its caller has left", late[len(late)/2], late[len(late)-1])
	if late[len(late)-1] > time.Second {
		t.Error("that is long")
	}
	mustUnlock(t, held)
	f.deserted()
}

// TestWaitRedisClosed: nobody who waited in a client is left after Close.
func TestWaitRedisClosed(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	held := mustLock(t, f.mutex("x"))
	c := f.open()
	var all []*waiting
	for range 5 {
		all = append(all, await(t.Context(), mutexOf(t, c, "x")))
	}
	f.attended()
	noErr(t, c.Close())
	for _, w := range all {
		<-w.done
		is(t, w.err, redlock.ErrClosed, redlock.ErrTaken)
	}
	mustUnlock(t, held)
	f.deserted()
}
