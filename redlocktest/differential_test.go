// A node in memory and a real server must answer alike.

package redlocktest_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

var seedFlag = flag.Uint64("seed", 0, "of TestDifferential; 0 draws one")

// TestDifferential runs random steps on both.
//
// No tolerance is needed. A step on the real server happens in a millisecond
// that is known to lie between two readings of the machine's clock, which is
// also the server's. So there must be a millisecond between them in which the
// node in memory gives the same answer, to the millisecond of Remaining, and is
// left with the same data, to the millisecond of each expiry. A loaded machine
// widens the choice, but what the step wrote or answered narrows it again.
func TestDifferential(t *testing.T) {
	const (
		steps  = 60
		enough = 5 // programs, of about half a second
		most   = 60 * enough
	)
	r := startServer(t)
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	seen := coverage{}
	for i := 0; i < enough || i < most && !seen.complete(); i++ {
		program := make([]byte, 2*steps)
		for j := range program {
			program[j] = byte(random.Uint32())
		}
		compare(t, r, program, seen)
	}
	t.Logf("seen: %v", seen)
	if !seen.complete() {
		t.Errorf("this was no test: of %q something is missing in %v", slices.Concat(must, lineCovers), seen)
	}
}

// FuzzDifferential is TestDifferential with steps of the fuzzer's choice.
func FuzzDifferential(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 4, 0, 6, 1, 7, 0, 0, 0})
	f.Add([]byte{0, 0, 14, 4, 0, 1, 9, 0, 14, 8, 0, 0})
	f.Add([]byte{12, 0, 0, 0, 5, 1, 8, 2, 13, 0, 11, 0, 4, 0, 4, 1})
	r := startServer(f)
	f.Fuzz(func(t *testing.T, program []byte) {
		compare(t, r, program[:min(len(program), 100)], coverage{})
	})
}

// coverage counts what has happened in both.
type coverage map[string]int

// must is what a test has to have met. An edge is an answer about a lock that is
// in its last millisecond, or was in it a millisecond ago, and where the time of
// the answer is known to the millisecond.
var must = []string{
	"acquire granted", "acquire taken", "acquire buried", "acquire wrong type", "acquire no time",
	"extend granted", "extend taken", "extend absent", "extend wrong type",
	"release released", "release taken", "release absent", "release wrong type",
	"bury released", "bury taken", "bury absent", "bury wrong type",
	"edge alive", "edge gone",
	"count granted", "count taken", "count buried", "count wrong type", "count no time",
	"raise granted", "raise taken", "raise absent", "raise no time",
	"rearm granted", "rearm taken", "rearm buried", "rearm no time",
	"keep granted", "keep taken", "keep absent",
}

func (c coverage) complete() bool {
	for _, what := range slices.Concat(must, lineCovers) {
		if c[what] == 0 {
			return false
		}
	}
	return true
}

func (c coverage) count(s step, o outcome) {
	c[s.op+" "+map[redlock.Verdict]string{
		redlock.Granted: "granted", redlock.Taken: "taken", redlock.Absent: "absent", redlock.Buried: "buried",
		redlock.Released: "released", redlock.Forbidden: "wrong type", redlock.Rejected: "no time",
	}[o.reply.Verdict]]++
}

// compare runs a program of two bytes to a step on both nodes.
func compare(t *testing.T, r server, program []byte, seen coverage) {
	t.Helper()
	if err := r.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	m := newMemory(time.Now().UnixMilli(), nil)
	var history strings.Builder
	for ; len(program) >= 2; program = program[2:] {
		before := m.dump()
		s := decode(program[0], program[1]).fixed(before, time.Now().UnixMilli())
		if s.op == "wait" {
			if k, ok := before[s.key]; ok && k.when != never {
				await(k.when + s.late)
			}
			continue
		}
		real, from, to := r.do(t, s)
		after, at := r.dump(t)
		fmt.Fprintf(&history, "%v\n\tin [%d, %d]: %v, leaving %v\n", s, from, to, real, after)

		if from*1000/bucket != (to*1000+999)/bucket {
			return // the floor of a counter may be either
		}
		s = s.looked(before, after)
		now, found := instant(t, s, before, real, after, from, to, at)
		if !found {
			if torn(t, s, before, real, after, from, to, at) {
				seen["torn"]++
				return
			}
			m := newMemory(from, before)
			t.Fatalf("%sin memory, in its first millisecond: %v, leaving %v", &history, m.do(t, s, from), m.dump())
		}
		if o := m.do(t, s, now); !alike(o, real) || !m.dump().becomes(after, at) {
			t.Fatalf("%sin memory, with this history: %v, leaving %v", &history, o, m.dump())
		}
		seen.countLine(s, real, before, after)
		if s.c == nil {
			continue
		}
		seen.count(s, real)
		if k, ok := before["k"]; ok && k.when != never && from == to {
			switch from {
			case k.when:
				seen["edge alive"]++
			case k.when + 1:
				seen["edge gone"]++
			}
		}
	}
}

// instant returns a millisecond in which the node in memory does the same.
func instant(t testing.TB, s step, before data, want outcome, after data, from, to, at int64) (now int64, found bool) {
	for now := from; now <= to; now++ {
		m := newMemory(now, before)
		if alike(m.do(t, s, now), want) && m.dump().becomes(after, at) {
			return now, true
		}
	}
	return 0, false
}

// torn reports whether the step did the same, but with some later millisecond
// for one or all expiries than for the answer. Servers before 7.2 look at the clock
// again each time they set an expiry in a script.
func torn(t testing.TB, s step, before data, want outcome, after data, from, to, at int64) bool {
	if s.c == nil && s.p == nil {
		return false
	}
	for now := from; now <= to; now++ {
		m := newMemory(now, before)
		if !alike(m.do(t, s, now), want) {
			continue
		}
		left := m.dump()
		if s.p == nil {
			if tornFrom(t, s, before, left, after, now, now+1, to, at) {
				return true
			}
			continue
		}
		for drawn := from; drawn <= to; drawn++ { // the ticket, and then the expiry, before the answer
			l := newMemory(drawn, before)
			l.do(t, s, drawn)
			if tornFrom(t, s, before, left.lines(l.dump(), after), after, now, from, to, at) {
				return true
			}
		}
	}
	return false
}

// tornFrom reports whether the node in memory was left with the same but for expiries
// of a millisecond from first on.
func tornFrom(t testing.TB, s step, before, left, after data, now, first, to, at int64) bool {
	for later := first; later <= to; later++ {
		l := newMemory(later, before)
		l.do(t, s, later)
		if left.torn(l.dump(), after, before, later-now).becomes(after, at) {
			return true
		}
	}
	return false
}

// alike compares what two nodes answered. Of errors, the first word counts.
func alike(a, b outcome) bool {
	word := func(err error) string {
		if err == nil {
			return ""
		}
		first, _, _ := strings.Cut(err.Error(), " ")
		return first
	}
	return a.reply == b.reply && a.told == b.told && word(a.err) == word(b.err)
}

// becomes reports whether d is what was found later, save for what had expired
// by then.
func (d data) becomes(found data, at int64) bool {
	rest := maps.Clone(d)
	maps.DeleteFunc(rest, func(key string, k datum) bool {
		_, ok := found[key]
		return !ok && k.when != never && k.when < at
	})
	return maps.Equal(rest, found)
}
