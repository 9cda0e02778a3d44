// What holds without options is what the documentation of the options says.

package redlock_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestDefaultsDocumented looks for the values that TestDefaults measures in the
// comments of options.go.
func TestDefaultsDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "options.go", nil, parser.ParseComments)
	noErr(t, err)
	docs := map[string]string{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "With") {
			docs[f.Name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
	}
	for name, doc := range docs {
		if !strings.Contains(doc, "efault") {
			t.Errorf("%s: its comment does not say what holds without it: %s", name, doc)
		}
	}
	for name, values := range map[string][]string{
		"WithTTL":         {"10s"},
		"WithDrift":       {"Factor: 0.01, Floor: 2 * time.Millisecond"},
		"WithNodeTimeout": {"a quarter of the TTL", "50ms", "1s", "half of a TTL up to 50ms"},
		"WithMinValidity": {"Default 0"},
		"WithRenewal":     {"a third of the TTL"},
		"WithMaxHold":     {"no such bound"},
		"WithBackoff":     {"16ms", "256ms"}, // measured by TestSpec08RandomDelay
		"WithMaxAttempts": {"until its context ends"},
		"WithKeyPrefix":   {`"lock:"`},
	} {
		for _, v := range values {
			if !strings.Contains(docs[name], v) {
				t.Errorf("%s: its comment does not say %q: %s", name, v, docs[name])
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Run("TTL, drift and prefix", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 5)
			l := s.lock("x")
			exactly(t, "remaining", l.Remaining(), 9898*time.Millisecond)
			synctest.Wait()
			for _, n := range s.all() {
				if _, ttl, ok := n.Get("lock:x"); !ok || ttl != 10*time.Second {
					t.Errorf("%s: lock:x lives %v, %t", n.Name(), ttl, ok)
				}
			}
			noErr(t, l.Unlock(t.Context()))
		})
	})

	for _, c := range []struct{ ttl, want time.Duration }{
		{10 * time.Millisecond, 5 * time.Millisecond},
		{50 * time.Millisecond, 25 * time.Millisecond},
		{51 * time.Millisecond, 50 * time.Millisecond},
		{200 * time.Millisecond, 50 * time.Millisecond},
		{300 * time.Millisecond, 75 * time.Millisecond},
		{2 * time.Second, 500 * time.Millisecond},
		{4 * time.Second, time.Second},
		{10 * time.Second, time.Second},
		{22 * time.Hour, time.Second},
	} {
		t.Run(fmt.Sprintf("node timeout for a TTL of %v", c.ttl), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 3)
				for _, n := range s.all() {
					n.Blackhole(true)
				}
				exactly(t, "node timeout", took(func() {
					_, err := s.mutex("x", redlock.WithTTL(c.ttl)).TryLock(t.Context())
					is(t, err, redlock.ErrNoQuorum, redlock.ErrNodeTimeout)
				}), c.want)
			})
		})
	}

	t.Run("renewal and time to hold", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := simulate(t, 3)
			const third = 10 * time.Second / 3
			start := time.Now()
			l := s.lock("x")
			time.Sleep(time.Hour)
			noErr(t, l.Err())
			last, renewals := start, 0
			for _, c := range s.Node(0).Calls() {
				if c.Op == redlocktest.Extend && c.At.Sub(last) > 0 {
					if d := c.At.Sub(last); d > third || d < third*85/100 {
						t.Fatalf("renewed after %v, want about %v", d, third)
					}
					last = c.At
					renewals++
				}
			}
			if renewals < 1000 {
				t.Errorf("%d renewals", renewals)
			}
			noErr(t, l.Unlock(t.Context()))
		})
	})

	t.Run("attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			s := simulate(t, 3, redlock.WithTrace(&redlock.Trace{AttemptDone: func(redlock.AttemptDone) { attempts++ }}))
			occupy("x", 0, s.all()...)
			const patience = 2 * time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			exactly(t, "wait", took(func() {
				_, err := s.mutex("x").Lock(ctx)
				is(t, err, context.DeadlineExceeded, redlock.ErrTaken)
			}), patience)
			if attempts < 200 {
				t.Errorf("%d attempts in %v", attempts, patience)
			}
		})
	})
}
