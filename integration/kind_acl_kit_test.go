// What docs/acl.md says, clients with those rights, and what they are told.

package integration_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

const password = "password" // as in the document

// acl is what docs/acl.md says: the rules of each user, for each right of the first
// one what happens without it, and what clients of other kinds need.
type acl struct {
	users   map[string][]string
	without map[string]string
	kinds   map[string]string
}

func readACL(t *testing.T) acl {
	t.Helper()
	text, err := os.ReadFile("../docs/acl.md")
	if err != nil {
		t.Fatal(err)
	}
	a := acl{make(map[string][]string), make(map[string]string), make(map[string]string)}
	for line := range strings.Lines(strings.ReplaceAll(string(text), `\|`, "¦")) {
		line = strings.TrimSpace(line)
		if fields := strings.Fields(line); strings.HasPrefix(line, "ACL SETUSER ") {
			a.users[fields[2]] = fields[3:]
		}
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "¦", "|")
		}
		switch {
		case strings.HasPrefix(line, "| `"):
			a.without[strings.Trim(cells[1], "`")] = cells[3]
		case strings.HasPrefix(line, "| of a "):
			a.kinds[cells[1]] = strings.Trim(cells[2], "`")
		}
	}
	return a
}

// rights are the rules that give a user something, and can be taken from it.
func rights(rules []string) (rights []string) {
	for _, r := range rules {
		if r[0] == '~' || r[0] == '&' || r[0] == '+' {
			rights = append(rights, r)
		}
	}
	return rights
}

// as makes the servers' user of that name anew, and returns a client as that user.
// The servers know no script.
func (f *farm) as(user string, rules []string, opts ...redlock.Option) *redlock.Client {
	f.Helper()
	var clients []redis.UniversalClient
	for _, s := range f.servers {
		tell(f, s, append([]string{"ACL", "SETUSER", user}, rules...)...)
		tell(f, s, "SCRIPT", "FLUSH")
		clients = append(clients, dialTo(f.T, s.Addr(), func(o *redis.Options) { o.Username, o.Password = user, password }))
	}
	return f.openOn(redlock.Redis(clients...), opts...)
}

// cycle returns the first error of a lock's life.
func cycle(m *redlock.Mutex) error {
	ctx := context.Background()
	l, err := m.TryLock(ctx)
	if err != nil {
		return err
	}
	if err := l.Extend(ctx); err != nil {
		return errors.Join(err, l.Unlock(ctx))
	}
	return l.Unlock(ctx)
}

// refused fails the test unless err has each node's name and its refusal.
func (f *farm) refused(err error) {
	f.Helper()
	if err == nil {
		f.Error("nobody notices")
		return
	}
	is(f, err, redlock.ErrNoQuorum)
	var names []string
	for _, e := range nodeErrors(f, err) {
		if text := e.Error(); !strings.Contains(text, "NOPERM") && !strings.Contains(text, "can't run this command") {
			f.Errorf("this says nothing of a right: %v", e)
		}
		names = append(names, e.Node)
	}
	for i, s := range f.servers {
		// Two are enough for the outcome, and the third is not waited for.
		if n := len(names); n < 2 || n == 3 && !slices.Contains(names, s.Addr()) {
			f.Errorf("node %d is not named: %v", i, err)
		}
	}
}

// told fails the test unless Check says something of n nodes.
func (f *farm) told(c *redlock.Client, n int, what string) {
	f.Helper()
	said := strings.Join(f.findings(c), "\n")
	if got := strings.Count(said, what); got != n {
		f.Errorf("Check says %q of %d nodes, want %d:\n%s", what, got, n, said)
	}
}

// called reports whether a waiter with the rights of a user is called by a release
// with the same rights, and how its being listed and its leaving end.
func (f *farm) called(user string) (called bool, enlist, leave error) {
	f.Helper()
	client := dialTo(f.T, f.servers[0].Addr(), func(o *redis.Options) { o.Username, o.Password = user, password })
	w := redlock.NewRedisNode("n", client).(redlock.Waker)
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
	defer cancel()
	ready, heard, deaf := make(chan struct{}, 9), make(chan struct{}, 9), make(chan struct{})
	go func() {
		defer close(deaf)
		_ = w.Listen(ctx, "redlock:wake:"+user, func() { ready <- struct{}{} }, func(string) { heard <- struct{}{} })
	}()
	select {
	case <-ready:
	case <-deaf:
	}
	lock := "lock:waited" + user
	claim := &redlock.Claim{Lock: lock, Tombstone: "redlock:tomb:{" + lock + "}", Queue: "redlock:queue:{" + lock + "}" + lock, Value: "v", TTL: time.Minute}
	place := &redlock.Place{Lock: lock, Queue: claim.Queue, Waiter: "redlock:wake:" + user + "/1", Ticket: time.Now().UnixMicro(), Life: time.Second}
	_, err := w.Acquire(ctx, claim)
	_, enlist = w.Enlist(ctx, place)
	released, e := w.Release(ctx, claim, false)
	if err != nil || e != nil || released.Verdict != redlock.Released {
		f.Errorf("%v, %v %v", err, released, e)
	}
	if released.Named {
		select {
		case <-heard:
			called = true
		case <-ctx.Done():
			f.Error("it was called, and has not heard it")
		}
	}
	return called, enlist, w.Delist(ctx, place)
}
