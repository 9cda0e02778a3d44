// A user with no more rights than docs/acl.md gives it: they are enough, and each of
// them is needed. The rights, and what is missing without one, are read from there.

package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// TestKindACLEnough: the whole body of TestKind as the users of the document.
func TestKindACLEnough(t *testing.T) {
	t.Parallel()
	a := readACL(t)
	for user, opts := range map[string][]redlock.Option{
		"redlock": {redlock.WithCrashGuard(guardTime), redlock.WithClockBound(3 * time.Second)},
		"plain":   {redlock.WithoutFencing()},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			f := startFarm(t, 3, func(o *redis.Options) { o.Username, o.Password = user, password })
			for _, s := range f.servers {
				tell(t, s, append([]string{"ACL", "SETUSER", user}, a.users[user]...)...)
			}
			if user == "plain" {
				f.testKind(opts, "does not tell everything", "does not tell about its server", "who waits is not called there")
			} else {
				f.testKind(opts, "has no vote until", "nodes have a vote")
				f.testCalls(opts...)
			}
		})
	}
}

// TestKindACLNeeded takes one right after the other from the user, and holds what
// the document says happens then, and that it has a row for each.
func TestKindACLNeeded(t *testing.T) {
	t.Parallel()
	a := readACL(t)
	f := startFarm(t, 3, nil)
	all := rights(a.users["redlock"])
	if len(all) < 10 || len(all) != len(a.without) {
		t.Errorf("%d rights and %d rows", len(all), len(a.without))
	}
	for i, right := range all {
		t.Run(right, func(t *testing.T) {
			without := a.without[right]
			f := &farm{T: t, servers: f.servers, sites: f.sites}
			rules := slices.DeleteFunc(slices.Clone(a.users["redlock"]), func(r string) bool { return r == right })
			tries := 1
			if strings.HasPrefix(without, "Lock fails") { // for good, so that one is enough
				tries = 3
			}
			var log bytes.Buffer
			var attempts atomic.Int64
			c := f.as(fmt.Sprint("u", i), rules, redlock.WithMaxAttempts(tries), redlock.WithTTL(time.Second),
				redlock.WithCrashGuard(time.Hour), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
				redlock.WithTrace(&redlock.Trace{AttemptStart: func(redlock.AttemptStart) { attempts.Add(1) }}))
			_, err := mutexOf(t, c, "guarded"+right).Lock(t.Context())
			if e := c.Close(); e != nil && !strings.HasPrefix(without, "Unlock fails") { // and the logger is quiet
				t.Error(e)
			}
			switch {
			case strings.HasPrefix(without, "Lock fails"):
				f.refused(err)
				if n := attempts.Load(); n != 1 {
					t.Errorf("%d attempts", n)
				}
			case strings.HasPrefix(without, "Check tells; `WithCrashGuard` has no effect"):
				if err != nil {
					t.Errorf("the guard has an effect: %v", err)
				}
				if strings.Count(log.String(), "level=WARN") != 3 || strings.Count(log.String(), "'info'") != 3 {
					t.Errorf("the log is not one line for each node:\n%s", &log)
				}
			case strings.HasPrefix(without, "Extend fails"), strings.HasPrefix(without, "Unlock fails"),
				strings.HasPrefix(without, "waiters "), without == "Check tells":
				if err == nil || !strings.Contains(err.Error(), "WithCrashGuard") { // the servers are young
					t.Errorf("not by the guard: %v", err)
				}
			default:
				t.Fatalf("the document has no row that says what happens: %q", without)
			}
			f.withoutGuard(fmt.Sprint("u", i), rules, without)
		})
	}
}

// TestKindACLOther: what a client of another kind needs in addition is that, no more
// and no less.
func TestKindACLOther(t *testing.T) {
	t.Parallel()
	a := readACL(t)
	if len(a.kinds) != 2 {
		t.Errorf("the document has %d kinds", len(a.kinds))
	}
	for kind, dial := range map[string]func(t *testing.T, user string) (redis.UniversalClient, *redisproc.Server){
		"of a database other than 0": func(t *testing.T, user string) (redis.UniversalClient, *redisproc.Server) {
			s := redisproc.Start(t)
			return dialTo(t, s.Addr(), func(o *redis.Options) { o.DB, o.Username, o.Password = 1, user, password }), s
		},
		"of a Cluster": func(t *testing.T, user string) (redis.UniversalClient, *redisproc.Server) {
			addrs, servers := startMasters(t, 1)
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Username: user, Password: password})
			t.Cleanup(func() { _ = c.Close() })
			return c, servers[0]
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client, server := dial(t, "u")
			f := &farm{T: t}
			m := mutexOf(t, f.openOn(redlock.Redis(client)), "m")
			tell(t, server, append([]string{"ACL", "SETUSER", "u"}, a.users["redlock"]...)...)
			if err := cycle(m); err == nil || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("without %s: %v", a.kinds[kind], err)
			}
			tell(t, server, "ACL", "SETUSER", "u", a.kinds[kind])
			if err := cycle(m); err != nil {
				t.Errorf("with %s: %v", a.kinds[kind], err)
			}
		})
	}
}

// withoutGuard goes on with clients that the servers' youth does not matter to.
func (f *farm) withoutGuard(user string, rules []string, without string) {
	f.Helper()
	c := f.as(user, rules, redlock.WithoutRenewal())
	if strings.HasPrefix(without, "Lock fails") {
		f.told(c, 3, "no lock can be taken and released there")
		unfenced := f.as(user, rules, redlock.WithoutFencing(), redlock.WithoutRenewal())
		err := cycle(mutexOf(f, unfenced, "unfenced"+user))
		if want := strings.HasSuffix(without, "not needed with `WithoutFencing`"); want != (err == nil) {
			f.Errorf("without fencing it is needed, or not, unlike the document says: %v", err)
		}
		return
	}
	m := mutexOf(f, c, user)
	l := f.lock(m)
	f.settled(l, 3)
	_, taken := m.TryLock(f.Context())
	extend, unlock := l.Extend(f.Context()), l.Unlock(f.Context())
	switch {
	case strings.HasPrefix(without, "Extend fails"):
		f.refused(extend)
		f.told(c, 3, "no lock can be renewed there")
	case strings.HasPrefix(without, "Unlock fails"):
		f.refused(unlock)
		f.told(c, 3, "no lock can be taken and released there")
		extend, unlock = nil, nil
		for _, s := range f.sites {
			s.eye.Del(f.Context(), "lock:"+user)
		}
	case strings.HasPrefix(without, "waiters "):
		is(f, taken, redlock.ErrTaken)
		f.told(c, 3, "who waits is not called there")
		called, enlist, leave := f.called(user)
		stays, blind := strings.HasPrefix(without, "waiters that have given up"), strings.HasPrefix(without, "waiters do not know")
		if called != (stays || blind) || stays != (leave != nil) || blind && enlist == nil {
			f.Errorf("a waiter is called: %v; it is listed: %v; it leaves: %v", called, enlist, leave)
		}
	default:
		f.told(c, 3, "does not tell everything")
		is(f, taken, redlock.ErrTaken)
	}
	if err := errors.Join(extend, unlock); err != nil && !strings.HasPrefix(without, "Extend fails") {
		f.Error(err)
	}
	f.free(user)
}
