// Every metric, moved by what it tells of.

package redlockotel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
	"go.opentelemetry.io/otel/attribute"

	"github.com/quorumlock/redlock/redlockotel"
)

// way is how long a command, and a reply, travels, so that durations are known.
const way = 5 * time.Millisecond

// moves are events, and the samples that they leave behind. The nodes are five, with
// 5ms each way, and a TTL of 3s.
var moves = []struct {
	name string
	opts []redlock.Option
	run  func(p *party)
	want map[string]string
}{
	{"nothing", nil, func(*party) {}, map[string]string{
		// A series that appears with its first event has no increase.
		`redlock_lease_acquired_total`:                            "0",
		`redlock_lease_endangered_total`:                          "0",
		`redlock_lease_lost_total{redlock_cause="expired"}`:       "0",
		`redlock_lease_lost_total{redlock_cause="no_quorum"}`:     "0",
		`redlock_lease_lost_total{redlock_cause="taken"}`:         "0",
		`redlock_lease_lost_total{redlock_cause="not_held"}`:      "0",
		`redlock_lease_lost_total{redlock_cause="max_hold"}`:      "0",
		`redlock_lease_lost_total{redlock_cause="closed"}`:        "0",
		`redlock_leases_held`:                                     "0",
		`redlock_locks_waiting`:                                   "0",
		`redlock_longest_pause_seconds`:                           "0",
		`redlock_cleanup_dropped_total{redlock_node="node-0"}`:    "",
		`redlock_advised_ttl_seconds{redlock_reason="latency"}`:   "",
		`redlock_attempts_total`:                                  "",
		`redlock_heartbeat_latency_seconds_count`:                 "",
		`redlock_lock_duration_seconds_count{error_type="taken"}`: "",
	}},
	{"lock and unlock", nil, func(p *party) {
		l := p.lock("a")
		time.Sleep(500 * time.Millisecond)
		noErr(p.t, l.Unlock(p.t.Context()))
	}, map[string]string{
		`redlock_lease_acquired_total`:                                                               "1",
		`redlock_attempts_total`:                                                                     "1",
		`redlock_attempt_duration_seconds_sum`:                                                       "0.01",
		`redlock_lock_duration_seconds_sum`:                                                          "0.01",
		`redlock_lock_duration_seconds_bucket{le="0.005"}`:                                           "0",
		`redlock_lock_duration_seconds_bucket{le="0.01"}`:                                            "1",
		`redlock_hold_duration_seconds_sum`:                                                          "0.5",
		`redlock_unlock_duration_seconds_sum`:                                                        "0.01",
		`redlock_unlock_duration_seconds_count`:                                                      "1",
		`redlock_node_duration_seconds_count{redlock_node="node-3",redlock_op="acquire"}`:            "1",
		`redlock_node_duration_seconds_sum{redlock_node="node-3",redlock_op="release"}`:              "0.01",
		`redlock_node_duration_seconds_bucket{redlock_node="node-3",redlock_op="release",le="0.01"}`: "1",
		`redlock_leases_held`:                                                                        "0",
		`redlock_cleanup_dropped_total{redlock_node="node-4"}`:                                       "0",
		`redlock_node_deaf_total{redlock_node="node-4"}`:                                             "0",
	}},
	{"heartbeats", nil, func(p *party) {
		p.t.Cleanup(keep(p.lock("a")))
		time.Sleep(10 * time.Second)
	}, map[string]string{
		`redlock_leases_held`: "1",
		`redlock_heartbeat_latency_seconds_bucket{le="0.005"}`: "0",
		`redlock_heartbeat_latency_seconds_bucket{le="0.01"}`:  "+",
		`redlock_heartbeat_delay_seconds_count`:                "+",
		`redlock_heartbeat_delay_seconds_sum`:                  "0",
	}},
	{"renewals fail until the lease is lost", nil, func(p *party) {
		l := p.lock("a")
		p.most(func(n *redlocktest.Node) { n.Refuse(true) })
		<-l.Done()
		is(p.t, l.Err(), redlock.ErrNoQuorum)
		is(p.t, l.Unlock(p.t.Context()), redlock.ErrLost)
	}, map[string]string{
		`redlock_lease_endangered_total`:                                                            "1",
		`redlock_lease_lost_total{redlock_cause="no_quorum"}`:                                       "1",
		`redlock_lease_lost_total{redlock_cause="expired"}`:                                         "0",
		`redlock_hold_duration_seconds_count{redlock_cause="no_quorum"}`:                            "1",
		`redlock_hold_duration_seconds_sum{redlock_cause="no_quorum"}`:                              "2.958",
		`redlock_hold_duration_seconds_count`:                                                       "", // once is enough
		`redlock_unlock_duration_seconds_count{error_type="lost"}`:                                  "1",
		`redlock_heartbeat_latency_seconds_count`:                                                   "",
		`redlock_leases_held`:                                                                       "0",
		`redlock_node_errors_total{error_type="unsent",redlock_node="node-0",redlock_op="extend"}`:  "+",
		`redlock_heartbeat_latency_seconds_count{error_type="no_quorum"}`:                           "+",
		`redlock_node_errors_total{error_type="unsent",redlock_node="node-0",redlock_op="acquire"}`: "",
	}},
	{"no renewal has an outcome", []redlock.Option{redlock.WithoutRenewal()}, func(p *party) {
		<-p.lock("a").Done()
		time.Sleep(time.Second)
	}, map[string]string{
		`redlock_lease_lost_total{redlock_cause="expired"}`: "1",
		`redlock_lease_endangered_total`:                    "0",
	}},
	{"the nodes forget", nil, func(p *party) {
		l := p.lock("a")
		p.most((*redlocktest.Node).FlushAll)
		<-l.Done()
	}, map[string]string{
		`redlock_lease_lost_total{redlock_cause="not_held"}`:              "1",
		`redlock_heartbeat_latency_seconds_count{error_type="not_held"}`:  "1",
		`redlock_heartbeat_latency_seconds_count{error_type="lost"}`:      "",
		`redlock_hold_duration_seconds_count{redlock_cause="not_held"}`:   "1",
		`redlock_heartbeat_latency_seconds_count{error_type="no_quorum"}`: "",
	}},
	{"another takes the lock", nil, func(p *party) {
		l := p.lock("a")
		p.most(func(n *redlocktest.Node) { n.Set("lock:a", "another", time.Minute) })
		<-l.Done()
		_, err := p.mutex("a").TryLock(p.t.Context())
		is(p.t, err, redlock.ErrTaken)
	}, map[string]string{
		`redlock_lease_lost_total{redlock_cause="taken"}`:            "1",
		`redlock_attempts_total{error_type="taken"}`:                 "1",
		`redlock_lock_duration_seconds_count{error_type="taken"}`:    "1",
		`redlock_attempt_duration_seconds_count{error_type="taken"}`: "1",
	}},
	{"the lease is as old as it may be", []redlock.Option{redlock.WithMaxHold(time.Second)}, func(p *party) {
		<-p.lock("a").Done()
	}, map[string]string{`redlock_lease_lost_total{redlock_cause="max_hold"}`: "1"}},
	{"the client is closed", nil, func(p *party) {
		p.t.Cleanup(keep(p.lock("a")))
		noErr(p.t, p.client.Close())
	}, map[string]string{
		`redlock_lease_lost_total{redlock_cause="closed"}`: "1",
		`redlock_leases_held`:                              "0",
	}},
	{"no quorum", nil, func(p *party) {
		p.most(func(n *redlocktest.Node) { n.Blackhole(true) })
		_, err := p.mutex("a").TryLock(p.t.Context())
		is(p.t, err, redlock.ErrNoQuorum)
	}, map[string]string{
		`redlock_attempts_total{error_type="no_quorum"}`:                                             "1",
		`redlock_lock_duration_seconds_count{error_type="no_quorum"}`:                                "1",
		`redlock_node_errors_total{error_type="timeout",redlock_node="node-0",redlock_op="acquire"}`: "1",
		`redlock_lease_acquired_total`:                                                               "0",
	}},
	{"votes too late", nil, func(p *party) {
		_, err := p.mutex("a", redlock.WithMinValidity(ttl-ttl/100-3*time.Millisecond)).TryLock(p.t.Context())
		is(p.t, err, redlock.ErrExpired)
	}, map[string]string{`redlock_attempts_total{error_type="expired"}`: "1"}},
	{"the caller leaves", nil, func(p *party) {
		ctx, cancel := context.WithTimeout(p.t.Context(), way)
		defer cancel()
		_, err := p.mutex("a").Lock(ctx)
		is(p.t, err, context.DeadlineExceeded)
	}, map[string]string{
		`redlock_attempts_total{error_type="canceled"}`:              "1",
		`redlock_attempts_total{error_type="no_quorum"}`:             "",
		`redlock_lock_duration_seconds_count{error_type="canceled"}`: "1",
	}},
	{"servers say no", nil, func(p *party) {
		p.Node(0).FailWith(errors.New("OOM"), redlock.Rejected)
		p.Node(1).FailWith(errors.New("NOPERM"), redlock.Forbidden, redlocktest.Release)
		noErr(p.t, p.lock("a").Unlock(p.t.Context()))
	}, map[string]string{
		`redlock_node_errors_total{error_type="rejected",redlock_node="node-0",redlock_op="acquire"}`:  "1",
		`redlock_node_errors_total{error_type="forbidden",redlock_node="node-1",redlock_op="release"}`: "1",
		`redlock_cleanup_dropped_total{redlock_node="node-1"}`:                                         "1",
		`redlock_cleanup_dropped_total{redlock_node="node-2"}`:                                         "0",
	}},
	{"a connection breaks", nil, func(p *party) {
		p.Node(0).LoseReplies(1)
		noErr(p.t, p.lock("a").Unlock(p.t.Context()))
	}, map[string]string{
		`redlock_node_errors_total{error_type="unanswered",redlock_node="node-0",redlock_op="acquire"}`: "1",
	}},
	{"a node has no vote", []redlock.Option{redlock.WithStrictNodes()}, func(p *party) {
		p.Node(0).Tell(func(i *redlock.ServerInfo) { i.Role = "slave" })
		_ = p.lock("a").Unlock(p.t.Context())
		time.Sleep(time.Minute) // until it has been looked at
		_ = p.lock("a").Unlock(p.t.Context())
	}, map[string]string{
		`redlock_node_errors_total{error_type="unfit",redlock_node="node-0",redlock_op="acquire"}`: "+",
	}},
	{"a release calls a waiter", nil, func(p *party) {
		holder := p.lock("a")
		done := make(chan struct{})
		go func() {
			defer close(done)
			l, err := p.mutex("a").Lock(context.Background())
			if err == nil {
				err = l.Unlock(context.Background())
			}
			if err != nil {
				p.t.Error(err)
			}
		}()
		time.Sleep(time.Second)
		_ = holder.Unlock(p.t.Context())
		<-done
	}, map[string]string{
		`redlock_waiter_called_total{redlock_node="node-1"}`:  "1",
		`redlock_node_deaf_total{redlock_node="node-1"}`:      "0",
		`redlock_lease_acquired_total`:                        "2",
		`redlock_locks_waiting`:                               "0",
		`redlock_lock_duration_seconds_count`:                 "2",
		`redlock_attempts_total{error_type="taken"}`:          "+",
		`redlock_lock_duration_seconds_bucket{le="0.5"}`:      "1",
		`redlock_attempt_duration_seconds_bucket{le="0.005"}`: "0",
	}},
	{"a waiter waits, and a node breaks", nil, func(p *party) {
		p.t.Cleanup(keep(p.lock("a")))
		ctx, cancel := context.WithCancel(context.Background())
		p.t.Cleanup(cancel)
		go func() { _, _ = p.mutex("a").Lock(ctx) }()
		time.Sleep(time.Second)
		p.Node(2).Refuse(true)
		time.Sleep(100 * time.Millisecond)
		p.Node(2).Refuse(false)
		time.Sleep(100 * time.Millisecond)
	}, map[string]string{
		`redlock_locks_waiting`: "1",
		// It looks, and looks are attempts, but take no time.
		`redlock_attempts_total{error_type="taken"}`:                             "+",
		`redlock_attempt_duration_seconds_bucket{error_type="taken",le="0.005"}`: "0",
		`redlock_node_deaf_total{redlock_node="node-2"}`:                         "+",
		`redlock_node_deaf_total{redlock_node="node-1"}`:                         "0",
	}},
	{repeats, nil, func(p *party) {
		p.Node(0).Blackhole(true)
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				l, err := p.mutex(fmt.Sprint("name-", i)).TryLock(p.t.Context())
				if err == nil {
					err = l.Unlock(p.t.Context())
				}
				if err != nil {
					p.t.Error(err)
				}
			})
		}
		all.Wait()
		time.Sleep(ttl)
	}, map[string]string{
		`redlock_lease_acquired_total`: "300",
		`redlock_node_errors_total{error_type="timeout",redlock_node="node-0",redlock_op="acquire"}`: "256",
		// It was never asked for the others, neither to lock nor to unlock.
		`redlock_node_errors_total{error_type="unsent",redlock_node="node-0",redlock_op="acquire"}`: "",
		`redlock_node_duration_seconds_count{redlock_node="node-0",redlock_op="acquire"}`:           "",
		`redlock_node_duration_seconds_count{redlock_node="node-0",redlock_op="release"}`:           "",
	}},
	{"heartbeats are slow", nil, func(p *party) {
		p.most(func(n *redlocktest.Node) { n.Delay(200*time.Millisecond, 200*time.Millisecond) })
		p.t.Cleanup(keep(p.lock("a")))
		time.Sleep(time.Minute)
	}, map[string]string{
		`redlock_heartbeat_latency_seconds_bucket{le="0.25"}`:   "0",
		`redlock_advised_ttl_seconds{redlock_reason="latency"}`: "+",
		`redlock_advised_ttl_seconds{redlock_reason="pause"}`:   "",
	}},
	{"the machine is suspended", nil, func(p *party) {
		p.t.Cleanup(keep(p.lock("a")))
		time.Sleep(500 * time.Millisecond)
		p.clock.Suspend(1500 * time.Millisecond)
		time.Sleep(10 * time.Second)
	}, map[string]string{
		`redlock_longest_pause_seconds`:                         "+",
		`redlock_heartbeat_delay_seconds_sum`:                   "+",
		`redlock_advised_ttl_seconds{redlock_reason="latency"}`: "",
		`redlock_advised_ttl_seconds{redlock_reason="pause"}`:   "+",
	}},
}

// wholeScrape is one of a process to whose clients all of this happens.
func wholeScrape(t *testing.T) (scrape string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		for _, m := range moves {
			name := redlockotel.WithAttributes(attribute.String("client", m.name))
			m.run(w.join(distant(), []redlockotel.Option{name}, m.opts...))
		}
		synctest.Wait()
		scrape = w.scrape()
	})
	return scrape
}

func distant() *redlocktest.Cluster {
	c := redlocktest.New(5)
	for i := range c.Len() {
		c.Node(i).Delay(way, way)
	}
	return c
}

// family is the name of a metric that has the sample name.
func family(sample string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(sample, suffix); ok {
			return name
		}
	}
	return sample
}

// keep keeps a lease from being collected, which ends it.
func keep(l *redlock.Lease) func() { return func() { _ = l.Name() } }

// TestMoves: each event leaves its samples, and no others of those named.
func TestMoves(t *testing.T) {
	for _, m := range moves {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				p := w.join(distant(), nil, m.opts...)
				m.run(p)
				synctest.Wait()
				w.wants(m.want)
				_ = p.client.Close() // some leave keys
				synctest.Wait()
				if n := w.open.names(); len(n) > 0 {
					t.Errorf("spans that did not end: %q", n)
				}
			})
		})
	}
}

// TestMovesAll: there is no metric that TestMoves does not move.
func TestMovesAll(t *testing.T) {
	moved := make(map[string]bool)
	for _, m := range moves {
		for series, want := range m.want {
			if want != "" && want != "0" {
				name, _, _ := strings.Cut(series, "{")
				moved[family(name)] = true
			}
		}
	}
	for _, name := range families(wholeScrape(t)) {
		if !moved[name] {
			t.Errorf("%s is not moved", name)
		}
	}
}
