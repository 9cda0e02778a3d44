// Server states in which a node says nothing, or that it is busy: CLIENT PAUSE, DEBUG
// SLEEP, a script that runs for ever. And clients that are not let in.

package integration_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// stateTime is how long a state lasts that ends by itself: far longer than what must
// not wait for it.
const stateTime = 4 * time.Second

// A silent is a state in which a server does not serve.
type silent struct {
	begin, end func(t *testing.T, s *redisproc.Server)
	words      string // of the nodes; empty: they say nothing, and time out
}

func passes(*testing.T, *redisproc.Server) {}

var silences = map[string]silent{
	"CLIENT PAUSE ALL": {begin: func(t *testing.T, s *redisproc.Server) {
		tell(t, s, "CLIENT", "PAUSE", fmt.Sprint(stateTime.Milliseconds()), "ALL")
	}, end: passes},
	"CLIENT PAUSE WRITE": {begin: func(t *testing.T, s *redisproc.Server) {
		tell(t, s, "CLIENT", "PAUSE", "60000", "WRITE")
	}, end: func(t *testing.T, s *redisproc.Server) { tell(t, s, "CLIENT", "UNPAUSE") }},
	"DEBUG SLEEP": {begin: func(t *testing.T, s *redisproc.Server) {
		go func() { _, _ = s.Do("DEBUG", "SLEEP", fmt.Sprint(stateTime.Seconds())) }()
		c := dialTo(t, s.Addr(), func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 50*time.Millisecond, -1 })
		if !eventually(stateTime/2, func() bool { return c.Ping(t.Context()).Err() != nil }) {
			t.Fatal("the server does not sleep")
		}
	}, end: passes},
	"BUSY": {words: "BUSY", begin: func(t *testing.T, s *redisproc.Server) {
		tell(t, s, "CONFIG", "SET", "busy-reply-threshold", "50")
		go func() { _, _ = s.Do("EVAL", "while true do end", "0") }()
		if !eventually(10*time.Second, func() bool {
			_, err := s.Do("PING")
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		}) {
			t.Fatal("the server is not busy")
		}
	}, end: func(t *testing.T, s *redisproc.Server) { tell(t, s, "SCRIPT", "KILL") }},
}

// TestStateSilent: on one node of three nobody notices. On two no lock is granted, and
// whoever asks knows it after the node timeout; a lease that is held goes on. When it
// is over all is as before, and nothing is left of what the servers execute then.
func TestStateSilent(t *testing.T) {
	t.Parallel()
	for name, state := range silences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const nodeTimeout = 300 * time.Millisecond
			f := startFarm(t, 3, nil, redisproc.Args("--enable-debug-command", "local"))
			var lost atomic.Int64
			c := f.open(redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(nodeTimeout), redlock.WithRenewal(time.Second),
				redlock.WithTrace(&redlock.Trace{Lost: func(redlock.Lost) { lost.Add(1) }}))
			f.warm(c)
			held := f.lock(mutexOf(t, c, "held"))
			f.settled(held, 3)

			state.begin(t, f.servers[0])
			start := time.Now()
			if err := cycle(mutexOf(t, c, "one")); err != nil || time.Since(start) > quick {
				t.Errorf("one node of three: %v after %v", err, time.Since(start))
			}
			state.begin(t, f.servers[1])
			start = time.Now()
			_, err := mutexOf(t, c, "two").TryLock(t.Context())
			took := time.Since(start)
			is(t, err, redlock.ErrNoQuorum)
			t.Logf("two nodes of three, after %v: %v", round(took), err)
			if took > nodeTimeout+quick {
				t.Errorf("it took %v, want no more than %v", took, nodeTimeout)
			}
			told := nodeErrors(t, err)
			if len(told) != 2 {
				t.Errorf("%d nodes are named", len(told))
			}
			for _, e := range told {
				if state.words == "" {
					is(t, e, redlock.ErrNodeTimeout)
				} else if !strings.Contains(e.Error(), state.words) {
					t.Error(e)
				}
			}

			state.end(t, f.servers[0])
			state.end(t, f.servers[1])
			f.unlock(f.lock(mutexOf(t, c, "two")))
			if err := held.Err(); err != nil || lost.Load() > 0 {
				t.Errorf("the lease that was held: %v", err)
			}
			f.settled(held, 3)
			f.unlock(held)
			for _, name := range []string{"held", "one", "two"} {
				f.free(name)
			}
			f.noKeys()
		})
	}
}

// TestStateWrongPassword: a permanent error, at once, by the name of the node. The
// driver wraps what the server says about it.
func TestStateWrongPassword(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]string{"requirepass": "", "user": "redlock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFarm(t, 3, func(o *redis.Options) { o.Username, o.Password = user, "wrong" })
			for _, s := range f.servers {
				tell(t, s, "ACL", "SETUSER", "redlock", "on", ">"+password, "~*", "+@all")
			}
			if user == "" {
				for _, s := range f.servers {
					tell(t, s, "CONFIG", "SET", "requirepass", password)
				}
			}
			var attempts atomic.Int64
			c := f.open(redlock.WithMaxAttempts(3), redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) { attempts.Add(1) }}))
			_, err := mutexOf(t, c, "m").Lock(t.Context())
			is(t, err, redlock.ErrNoQuorum)
			t.Log(err)
			if n := attempts.Load(); n != 1 {
				t.Errorf("%d attempts", n)
			}
			told := nodeErrors(t, err)
			for _, e := range told {
				if !strings.Contains(e.Error(), "WRONGPASS") || e.Node == "" {
					t.Errorf("%v says nothing of a password", e)
				}
			}
			if len(told) < 2 {
				t.Errorf("%d nodes are named", len(told))
			}
		})
	}
}
