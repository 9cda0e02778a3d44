package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
)

// A scene is a world in which nothing happens but what a test says.
type scene struct {
	*World
	a, b *machine
}

func newScene(t *testing.T, p *Profile) *scene {
	t.Helper()
	w := &World{Spec: Spec{Profile: p}, truth: newTruth()}
	w.Setting = Setting{Nodes: 3, Machines: 2, Names: 1, TTL: time.Second, Timeout: 100 * time.Millisecond, Fenced: true}
	w.NodeRates, w.NodeOffsets = make([]float64, 3), make([]time.Duration, 3)
	w.MachineRates, w.MachineOffsets = []float64{1, 1}, make([]time.Duration, 2)
	w.make()
	t.Cleanup(func() {
		for _, m := range w.machines {
			m.client.Close()
			m.die()
		}
	})
	return &scene{w, w.machines[0], w.machines[1]}
}

func (s *scene) grant(m *machine, token int64, elapsed, validity time.Duration) *holding {
	s.ledger.granted(m, &redlock.AttemptDone{Name: "a", Token: token, Elapsed: elapsed, Validity: validity})
	return s.ledger.current(m, "a")
}

// verdict takes the violation out of the ledger.
func (s *scene) verdict() string {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	v := s.ledger.violation
	s.ledger.violation = ""
	return v
}

// TestLedger is what the judge lets pass, and what not.
func TestLedger(t *testing.T) {
	inside, outside := &Profile{}, &Profile{Outside: true}
	for _, c := range []struct {
		name    string
		profile *Profile
		do      func(s *scene)
		want    string // of the violation; empty for none
	}{
		{"one after the other", inside, func(s *scene) {
			s.grant(s.a, 1, time.Millisecond, time.Second)
			s.truth.pass(time.Second + 2*time.Millisecond)
			s.grant(s.b, 2, time.Millisecond, time.Second)
		}, ""},
		{"unlocked", inside, func(s *scene) {
			h := s.grant(s.a, 1, time.Millisecond, time.Second)
			s.ledger.unlocked(&worker{world: s.World, machine: s.a}, h)
			s.grant(s.b, 2, time.Millisecond, time.Second)
		}, ""},
		{"unlocked when it was over, without a word", inside, func(s *scene) {
			h := s.grant(s.a, 1, 0, time.Second)
			s.truth.pass(time.Second + time.Millisecond)
			k := &worker{world: s.World, machine: s.a}
			s.ledger.told(k, h, s.ledger.unlocked(k, h), nil)
		}, "Unlock says nothing of a, token 1, which was over"},
		{"unlocked in time, and said to be gone", inside, func(s *scene) {
			h := s.grant(s.a, 1, 0, time.Second)
			k := &worker{world: s.World, machine: s.a}
			s.ledger.told(k, h, s.ledger.unlocked(k, h), redlock.ErrNotHeld)
		}, "with 1.000000001s left"},
		{"lost", inside, func(s *scene) {
			s.grant(s.a, 1, time.Millisecond, time.Second)
			s.ledger.lost(s.a, "a", redlock.ErrTaken)
			s.grant(s.b, 2, time.Millisecond, time.Second)
		}, ""},
		{"dead", inside, func(s *scene) {
			s.grant(s.a, 1, time.Millisecond, time.Second)
			kind("machine-dies").Begin(s.World, &Fault{Machine: 0})
			s.grant(s.b, 2, time.Millisecond, time.Second)
		}, ""},
		{"a nanosecond too early", inside, func(s *scene) {
			s.grant(s.a, 1, 0, time.Second)
			s.truth.pass(time.Second - 1)
			s.grant(s.b, 2, 0, time.Second)
		}, "is granted to machine 1, token 2, while machine 0, token 1 holds it for 2ns more"},
		{"the same outside", outside, func(s *scene) {
			s.grant(s.a, 1, 0, time.Second)
			s.grant(s.b, 2, 0, time.Second)
		}, ""},
		{"a slow clock", inside, func(s *scene) {
			s.a.rate = .5
			s.grant(s.a, 1, 0, time.Second)
			s.truth.pass(2*time.Second - time.Millisecond)
			s.grant(s.b, 2, 0, time.Second)
		}, "while machine 0, token 1 holds it"},
		{"a token twice", outside, func(s *scene) {
			s.grant(s.a, 1, 0, time.Second)
			s.grant(s.b, 1, 0, time.Second)
		}, "granted twice with the token 1"},
		{"a smaller token later", outside, func(s *scene) {
			s.grant(s.a, 2, 0, time.Second)
			s.truth.pass(time.Second)
			s.grant(s.b, 1, time.Millisecond, time.Second)
		}, "after a grant to machine 0, token 2"},
		{"a smaller token at the same time", outside, func(s *scene) {
			s.grant(s.a, 2, 0, time.Second)
			s.truth.pass(time.Second)
			s.grant(s.b, 1, 2*time.Second, time.Second)
		}, ""},
		{"renewed in time", inside, func(s *scene) {
			s.grant(s.a, 1, 0, time.Second)
			s.truth.pass(time.Second)
			s.ledger.renewed(s.a, "a", time.Second)
		}, ""},
		{"renewed too late", outside, func(s *scene) {
			s.grant(s.a, 1, 0, time.Second)
			s.truth.pass(time.Second + time.Millisecond)
			s.ledger.renewed(s.a, "a", time.Second)
		}, "is renewed by machine 0, token 1, 999.999µs after it was over"},
		{"renewed beside another", inside, func(s *scene) {
			s.grant(s.a, 1, 0, 2*time.Second)
			s.ledger.holdings["a"] = append(s.ledger.holdings["a"], &holding{machine: s.b, name: "a", token: 2, until: 5 * time.Second})
			s.ledger.renewed(s.a, "a", 3*time.Second)
		}, "is renewed by machine 0, token 1, while machine 1, token 2 holds it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, c.profile)
				c.do(s)
				if got := s.verdict(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
					t.Errorf("violation %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestLedgerEnd is that a lease which goes on after its time is seen: here it was said to
// be shorter than it is.
func TestLedgerEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, &Profile{})
		m, err := s.a.client.NewMutex("a")
		if err != nil {
			t.Fatal(err)
		}
		s.ledger.holdings["a"] = nil
		l, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h := s.ledger.attach(&worker{world: s.World, machine: s.a}, l)
		s.ledger.mu.Lock()
		h.until = s.now() + 100*time.Millisecond
		s.ledger.watch(h)
		s.ledger.mu.Unlock()
		s.truth.pass(100*time.Millisecond + 10*time.Microsecond)
		if got := s.verdict(); !strings.Contains(got, "has no error after its end") {
			t.Errorf("violation %q", got)
		}
		s.truth.pass(10 * time.Millisecond)
		if got := s.verdict(); !strings.Contains(got, "goes on after its end") {
			t.Errorf("violation %q", got)
		}
	})
}

// TestLeftovers is that locks, acquires without a release, calls that take too long and
// updates that were lost are seen.
func TestLeftovers(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *scene)
		want string
	}{
		{"nothing", func(*scene) {}, ""},
		{"a lock", func(s *scene) {
			s.owned("x.1", claimant{s.a, 1})
			s.cluster.Node(1).Set("lock:a", "x.1", 10*time.Second)
		}, `node 1 still has the lock "lock:a"`},
		{"a lock that is excused, for a time", func(s *scene) {
			s.spoilt[1] = true
			s.cluster.Node(1).Set("lock:a", "x.1", time.Second)
		}, ""},
		{"a lock that is excused, for ever", func(s *scene) {
			s.spoilt[1] = true
			s.cluster.Node(1).Set("lock:a", "x.1", 0)
		}, "after its TTL"},
		{"no release", func(s *scene) { s.links[0][2].unknown["x.2"] = true }, `acquires of ["x.2"] had no answer from node 2`},
		{"a release", func(s *scene) { s.links[0][2].unknown["x.2"], s.links[0][2].released["x.2"] = true, true }, ""},
		{"a release given up", func(s *scene) {
			s.links[0][2].unknown["x.2"] = true
			s.a.dropped("node-2")
		}, ""},
		{"a call", func(s *scene) {
			k := newWorker(s.World, s.a, 0)
			k.bounded("Lock", time.Second, func() { s.truth.pass(time.Second + 11*time.Millisecond) })
		}, "worker 0: Lock took 1.011s, and may take 1s"},
		{"a call of a machine that was stopped", func(s *scene) {
			k := newWorker(s.World, s.a, 0)
			k.bounded("Lock", time.Second, func() {
				s.a.stop()
				s.truth.pass(2 * time.Second)
				s.a.goOn()
			})
		}, ""},
		{"an update", func(s *scene) { s.stores["a"].writes = 2 }, "the storage let 2 updates through and has 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, &Profile{})
				c.do(s)
				s.end(0)
				if got := s.verdict(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
					t.Errorf("violation %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestGoroutinesLeft is that one that outlives Close is seen.
func TestGoroutinesLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, &Profile{})
		done := make(chan struct{})
		defer close(done)
		go func() { <-done }()
		s.end(0)
		if got := s.verdict(); !strings.Contains(got, "1 goroutines are left") {
			t.Errorf("violation %q", got)
		}
	})
}

// TestKinds is that each kind of fault is in a profile, says whom it strikes, and does
// something.
func TestKinds(t *testing.T) {
	used := map[string]bool{}
	for _, p := range Profiles {
		for _, name := range p.Kinds {
			used[name] = true
		}
	}
	for _, k := range kinds {
		if !used[k.Name] || k.Begin == nil && k.Message == nil || !strings.Contains(k.Words, "%s") || (k.Message != nil) != (k.Strike == aLink) {
			t.Errorf("%s: used %v, words %q", k.Name, used[k.Name], k.Words)
		}
		if (k.End != nil || k.Message != nil) != (k.Longest > 0) {
			t.Errorf("%s: lasts %v TTLs, and ends %v", k.Name, k.Longest, k.End != nil)
		}
	}
}
