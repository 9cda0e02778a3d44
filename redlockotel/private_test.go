// What is nowhere: owner tokens, and names of mutexes that are not asked for.

package redlockotel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
	"go.opentelemetry.io/otel/attribute"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/quorumlock/redlock/redlockotel"
)

func noop() tracenoop.TracerProvider { return tracenoop.NewTracerProvider() }

const secret = "invoice-4711"

// story is a lease that is kept, contended for, lost, and asked for in vain. It returns
// the owner token.
func story(p *party) string {
	lease := p.lock(secret)
	_, err := p.mutex(secret).TryLock(p.t.Context())
	is(p.t, err, redlock.ErrTaken)
	time.Sleep(2 * ttl)
	p.most(func(n *redlocktest.Node) { n.Refuse(true) })
	<-lease.Done()
	p.most(func(n *redlocktest.Node) {
		n.Heal()
		n.FailWith(errors.New("server says: no "+secret), redlock.Rejected)
	})
	_, err = p.mutex(secret).TryLock(p.t.Context())
	is(p.t, err, redlock.ErrNoQuorum)
	is(p.t, lease.Unlock(p.t.Context()), redlock.ErrLost)
	synctest.Wait()
	return lease.Token()
}

// told is all that was reported, as text.
func (w *watch) told() (scrape, spans string) {
	w.t.Helper()
	var b strings.Builder
	for _, s := range w.spans.GetSpans() {
		fmt.Fprintln(&b, s.Name, s.Status.Description)
		attributes := s.Attributes
		for _, e := range s.Events {
			fmt.Fprintln(&b, e.Name)
			attributes = append(attributes, e.Attributes...)
		}
		text, err := json.Marshal(attributes)
		noErr(w.t, err)
		b.Write(text)
	}
	return w.scrape(), b.String()
}

func TestPrivate(t *testing.T) {
	for _, c := range []struct {
		name             string
		opts             []redlockotel.Option
		inScrape, inSpan bool // the name
	}{
		{"default", nil, false, true},
		{"WithMutexNames", []redlockotel.Option{redlockotel.WithMutexNames()}, true, true},
		{"WithoutSpanNames", []redlockotel.Option{redlockotel.WithoutSpanNames()}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				token := story(w.join(distant(), c.opts))
				scrape, spans := w.told()
				if strings.Contains(scrape, secret) != c.inScrape || strings.Contains(spans, secret) != c.inSpan {
					t.Errorf("the name is where it should not be, or the other way round:\n%s\n%s", scrape, spans)
				}
				if len(token) < 20 || strings.Contains(scrape+spans, token[:20]) {
					t.Errorf("the owner token %q is in\n%s\n%s", token, scrape, spans)
				}
				if !strings.Contains(spans, "redlock.lost") {
					t.Error("there was no loss to tell of")
				}
			})
		})
	}
}

// TestNamed: with WithMutexNames each name has series of its own, which begin at 0, but
// those of nodes have none.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		p := w.join(distant(), []redlockotel.Option{redlockotel.WithMutexNames()})
		noErr(t, p.lock("a").Unlock(t.Context()))
		noErr(t, p.lock("b").Unlock(t.Context()))
		synctest.Wait()
		w.wants(map[string]string{
			`redlock_lease_acquired_total{redlock_name="a"}`:                                  "1",
			`redlock_lease_acquired_total{redlock_name="b"}`:                                  "1",
			`redlock_lease_lost_total{redlock_cause="no_quorum",redlock_name="a"}`:            "0",
			`redlock_node_duration_seconds_count{redlock_node="node-1",redlock_op="acquire"}`: "2",
		})
	})
}

// TestSeries: the number of series does not grow with names.
func TestSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		p := w.join(distant(), nil)
		count := func(names int) int {
			for i := range names {
				noErr(t, p.lock(fmt.Sprint("name-", i)).Unlock(t.Context()))
			}
			synctest.Wait()
			return len(w.values())
		}
		if few, many := count(1), count(500); few != many {
			t.Errorf("%d series for one name, %d for 500", few, many)
		}
	})
}

// TestAttributes: two clients in one process are told apart, in every series and span.
func TestAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		of := func(name string) []redlockotel.Option {
			return []redlockotel.Option{redlockotel.WithAttributes(attribute.String("client", name))}
		}
		one, two := w.join(distant(), of("one")), w.join(distant(), of("two"))
		t.Cleanup(keep(one.lock("a")))
		t.Cleanup(keep(two.lock("a")))
		t.Cleanup(keep(two.lock("b")))
		synctest.Wait()
		w.wants(map[string]string{
			`redlock_leases_held{client="one"}`:          "1",
			`redlock_leases_held{client="two"}`:          "2",
			`redlock_lease_acquired_total{client="one"}`: "1",
			`redlock_lease_acquired_total{client="two"}`: "2",
		})
		one.clock.Suspend(ttl / 2)
		time.Sleep(ttl) // there is advice now
		for series := range w.values() {
			if strings.HasPrefix(series, "redlock_") && !strings.Contains(series, `client="`) {
				t.Errorf("%s has no client", series)
			}
		}
		for _, s := range w.spans.GetSpans() {
			if value(s.Attributes, "client") == "" {
				t.Errorf("%s has no client", s.Name)
			}
		}
	})
}
