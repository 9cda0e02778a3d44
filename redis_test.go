// Redis says no: every error reply that a lock may meet, on real servers.

package redlock_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A refusal is a state of a server in which it answers with an error.
type refusal struct {
	words     string // of the answer
	permanent bool   // time does not heal it
	start     func(t *testing.T, s *redisproc.Server)
	end       func(t *testing.T, s *redisproc.Server)
}

// ask runs a command on a server, which must not fail.
func ask(t testing.TB, s *redisproc.Server, args ...string) string {
	t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%s: %q: %v", s.Addr(), args, err)
	}
	return reply
}

// asking is ask for later.
func asking(args ...string) func(*testing.T, *redisproc.Server) {
	return func(t *testing.T, s *redisproc.Server) {
		t.Helper()
		ask(t, s, args...)
	}
}

var refusals = map[string]refusal{
	"WRONGTYPE": {
		words: "WRONGTYPE", permanent: true,
		start: asking("RPUSH", "lock:m", "precious"),
		end: func(t *testing.T, s *redisproc.Server) {
			t.Helper()
			if got := ask(t, s, "LRANGE", "lock:m", "0", "-1"); got != "precious" {
				t.Errorf("the list that was at the key is now %q", got)
			}
			ask(t, s, "DEL", "lock:m")
		},
	},
	"NOAUTH": {
		words: "NOAUTH", permanent: true,
		start: func(t *testing.T, s *redisproc.Server) {
			t.Helper()
			ask(t, s, "CONFIG", "SET", "requirepass", "secret")
			admin(t, s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") // those that are in stay in
		},
		end: func(t *testing.T, s *redisproc.Server) {
			t.Helper()
			admin(t, s, "CONFIG", "SET", "requirepass", "")
		},
	},
	"NOPERM command": {
		words: "NOPERM", permanent: true,
		start: asking("ACL", "SETUSER", "default", "-eval", "-evalsha"),
		end:   asking("ACL", "SETUSER", "default", "+@all"),
	},
	"NOPERM key": {
		words: "NOPERM", permanent: true,
		start: asking("ACL", "SETUSER", "default", "resetkeys", "~others:*"),
		end:   asking("ACL", "SETUSER", "default", "allkeys"),
	},
	"NOPERM in a script": {
		words: "can't run this command", permanent: true,
		start: asking("ACL", "SETUSER", "default", "-set"),
		end:   asking("ACL", "SETUSER", "default", "+@all"),
	},
	"OOM": {
		words: "OOM",
		start: asking("CONFIG", "SET", "maxmemory", "1"),
		end:   asking("CONFIG", "SET", "maxmemory", "0"),
	},
	"MISCONF": {
		words: "MISCONF",
		start: func(t *testing.T, s *redisproc.Server) {
			t.Helper()
			// The snapshot cannot take the place of a directory.
			noErr(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o755))
			ask(t, s, "CONFIG", "SET", "save", "3600 1000000")
			ask(t, s, "BGSAVE")
			saved(t, s, "err")
		},
		end: func(t *testing.T, s *redisproc.Server) {
			t.Helper()
			noErr(t, os.Remove(filepath.Join(s.Dir(), "dump.rdb")))
			ask(t, s, "BGSAVE")
			saved(t, s, "ok")
		},
	},
	"READONLY": {
		words: "READONLY",
		start: asking("REPLICAOF", "127.0.0.1", "1"),
		end:   asking("REPLICAOF", "NO", "ONE"),
	},
}

// admin runs a command with the password that the server has got.
func admin(t *testing.T, s *redisproc.Server, args ...any) {
	t.Helper()
	c := dial(t, s.Addr(), func(o *redis.Options) { o.Password = "secret" })
	noErr(t, c.Do(t.Context(), args...).Err())
}

func saved(t *testing.T, s *redisproc.Server, status string) {
	t.Helper()
	if !eventually(10*time.Second, func() bool {
		return strings.Contains(ask(t, s, "INFO", "persistence"), "rdb_last_bgsave_status:"+status)
	}) {
		t.Fatalf("the snapshot's status is not %q", status)
	}
}

// TestRedisRefuses: on one node of three a refusal is nobody's concern. On two, it
// fails the vote; if it is permanent Lock ends at once, otherwise it goes on, and
// succeeds as soon as the refusal is over. The server's own words are told.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			var attempts atomic.Int64
			c := f.open(redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) { attempts.Add(1) }}))
			f.warm(c)
			m := mutexOf(t, c, "m", redlock.WithMaxAttempts(3))

			r.start(t, f.servers[0])
			l, err := m.TryLock(t.Context())
			noErr(t, err)
			noErr(t, l.Extend(t.Context()))
			noErr(t, l.Unlock(t.Context()))
			if !eventually(quick, func() bool {
				return len(lockKeys(t, f.servers[1])) == 0 && len(lockKeys(t, f.servers[2])) == 0
			}) {
				t.Error("there are locks on the healthy nodes")
			}

			r.start(t, f.servers[1])
			attempts.Store(0)
			_, err = m.Lock(t.Context())
			is(t, err, redlock.ErrNoQuorum)
			isNot(t, err, redlock.ErrTaken, redlock.ErrNodeTimeout)
			want := int64(3)
			if r.permanent {
				want = 1
			}
			if n := attempts.Load(); n != want {
				t.Errorf("%d attempts, want %d: %v", n, want, err)
			}
			refusing := 0
			for _, e := range nodeErrors(t, err) {
				if strings.Contains(e.Error(), r.words) {
					refusing++
					if _, ok := errors.AsType[redis.Error](e); !ok {
						t.Errorf("%v is not what go-redis returned", e)
					}
				}
			}
			if refusing != 2 {
				t.Errorf("%d nodes say %s: %v", refusing, r.words, err)
			}

			r.end(t, f.servers[1])
			mustUnlock(t, mustLock(t, m))
			r.end(t, f.servers[0])
			mustUnlock(t, mustLock(t, m))
			f.noLocks(quick + time.Second)
		})
	}
}

// nodeErrors returns the errors of the nodes in err.
func nodeErrors(t *testing.T, err error) []*redlock.NodeError {
	t.Helper()
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok {
		t.Fatalf("%v is no *QuorumError", err)
	}
	var found []*redlock.NodeError
	for _, e := range q.Nodes.WrappedErrors() {
		n, ok := errors.AsType[*redlock.NodeError](e)
		if !ok {
			t.Fatalf("%v is no *NodeError", e)
		}
		found = append(found, n)
	}
	return found
}

// TestRedisRefusesHolder: a lock that is held when a server runs out of memory or
// becomes read-only is still released where the server lets us, and where it does
// not, once it does.
func TestRedisRefusesHolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"OOM", "MISCONF", "READONLY", "NOPERM command"} {
		r := refusals[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			c := f.open(redlock.WithTTL(time.Minute), redlock.WithoutRenewal())
			f.warm(c)
			l := mustLock(t, mutexOf(t, c, "m"))
			f.settled(3)
			for _, s := range f.servers {
				r.start(t, s)
			}
			err := l.Unlock(t.Context())
			if name == "OOM" {
				noErr(t, err)
				f.noLocks(quick)
				return
			}
			is(t, err, redlock.ErrNoQuorum)
			for _, e := range nodeErrors(t, err) {
				if !strings.Contains(e.Error(), r.words) {
					t.Error(e)
				}
			}
			for _, s := range f.servers {
				r.end(t, s)
			}
			if r.permanent {
				return // such a release is not repeated
			}
			f.noLocks(2*time.Second + quick)
		})
	}
}

// TestRedisForgetsScripts: SCRIPT FLUSH and restarts in the middle of a run are
// not noticed.
func TestRedisForgetsScripts(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	m := f.mutex("m")
	for i := range 30 {
		for j, s := range f.servers {
			if (i+j)%2 == 0 {
				ask(t, s, "SCRIPT", "FLUSH")
			}
		}
		l, err := m.TryLock(t.Context())
		noErr(t, err)
		f.settled(3)
		ask(t, f.servers[i%3], "SCRIPT", "FLUSH")
		noErr(t, l.Extend(t.Context()))
		ask(t, f.servers[i%3], "SCRIPT", "FLUSH")
		noErr(t, l.Unlock(t.Context()))
		f.noLocks(10 * time.Second)
		if i%10 == 9 {
			f.servers[i%3].Restart()
		}
	}
}
