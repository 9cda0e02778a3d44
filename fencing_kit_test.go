// What the tests of fencing tokens share: counters, and the order of a history.

package redlock_test

import (
	"cmp"
	"errors"
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

// counterKey is where the counter of a lock is, for a name without braces.
func counterKey(name string) string { return "redlock:fence:{lock:" + name + "}lock:" + name }

// counter returns the number in a lock's counter, 0 if there is none.
func counter(t testing.TB, s *redisproc.Server, name string) int64 {
	t.Helper()
	text := ask(t, s, "GET", counterKey(name))
	if text == "(nil)" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	noErr(t, err)
	return n
}

// clockOf returns a server's time in microseconds.
func clockOf(t testing.TB, s *redisproc.Server) int64 {
	t.Helper()
	sec, us, _ := strings.Cut(ask(t, s, "TIME"), "\n")
	a, err1 := strconv.ParseInt(sec, 10, 64)
	b, err2 := strconv.ParseInt(us, 10, 64)
	noErr(t, errors.Join(err1, err2))
	return a*1e6 + b
}

// An issue is one acquisition: when it was asked for, when it was granted, and
// the token.
type issue struct {
	from, to time.Time // of one process: they compare by the monotonic clock
	token    int64
}

// A ledger is all acquisitions of one name.
type ledger struct {
	mu   sync.Mutex
	list []issue
}

// lock locks m and enters the token.
func (g *ledger) lock(t testing.TB, m *redlock.Mutex) *redlock.Lease {
	t.Helper()
	from := time.Now()
	l := mustLock(t, m)
	to := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, issue{from, to, l.FencingToken()})
	return l
}

// highest returns the highest token so far.
func (g *ledger) highest() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return highest(g.list)
}

func highest(list []issue) int64 {
	var most int64
	for _, i := range list {
		most = max(most, i.token)
	}
	return most
}

// check fails the test if the tokens are not in order.
func (g *ledger) check(t testing.TB) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := disorder(g.list); err != nil {
		t.Error(err)
	}
}

// disorder returns what is wrong with tokens: one is there twice, or is not above
// those of the acquisitions that had returned before it began.
func disorder(list []issue) error {
	began := slices.SortedFunc(slices.Values(list), func(a, b issue) int { return a.from.Compare(b.from) })
	returned := slices.SortedFunc(slices.Values(list), func(a, b issue) int { return a.to.Compare(b.to) })
	seen := make(map[int64]bool, len(list))
	var before issue // the highest token of those that have returned
	for _, i := range began {
		for ; len(returned) > 0 && returned[0].to.Before(i.from); returned = returned[1:] {
			before = slices.MaxFunc([]issue{before, returned[0]}, func(a, b issue) int { return cmp.Compare(a.token, b.token) })
		}
		switch {
		case seen[i.token]:
			return fmt.Errorf("token %d was given out twice", i.token)
		case i.token <= before.token:
			return fmt.Errorf("token %d, although %d was given out %v before it was asked for", i.token, before.token, i.from.Sub(before.to))
		}
		seen[i.token] = true
	}
	return nil
}

// TestDisorder: the check itself can fail.
func TestDisorder(t *testing.T) {
	start := time.Now()
	at := func(from, to, token int) issue {
		return issue{start.Add(time.Duration(from)), start.Add(time.Duration(to)), int64(token)}
	}
	for name, c := range map[string]struct {
		list []issue
		want bool
	}{
		"in order":         {[]issue{at(1, 2, 1), at(3, 4, 2), at(5, 6, 9)}, false},
		"overlapping":      {[]issue{at(1, 4, 2), at(3, 6, 1)}, false},
		"touching":         {[]issue{at(1, 3, 2), at(3, 6, 1)}, false},
		"twice":            {[]issue{at(1, 4, 2), at(3, 6, 2)}, true},
		"swapped":          {[]issue{at(1, 2, 2), at(3, 4, 1)}, true},
		"swapped far away": {[]issue{at(1, 2, 5), at(3, 100, 6), at(4, 5, 7), at(6, 7, 4)}, true},
	} {
		if err := disorder(c.list); (err != nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
