// One run: nodes, ledger and workers started, the job watched, the ledger audited.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

// run does the whole run and reports it. Whatever happens, it leaves no
// process, file or schema behind. It returns whether the ledger shows every
// invoice billed exactly once.
func run(ctx context.Context, conf config, scr *screen) (exact bool, err error) {
	addrs := conf.nodes
	if len(addrs) == 0 {
		embedded, err := nodes.StartEmbedded(5, conf.ttl)
		if err != nil {
			return false, err
		}
		defer embedded.Close()
		addrs = embedded.Addrs()
	}
	down, err := pingNodes(ctx, addrs)
	if err != nil {
		return false, err
	}

	place, remove, err := newStore(ctx, conf.dsn)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	db, err := place.open()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	book := ledger{db, place.fence()}
	if err := book.create(ctx, conf.customers, sampleInvoices(conf.invoices, conf.customers, conf.seed)); err != nil {
		return false, fmt.Errorf("fill the ledger: %w", err)
	}

	scr.printf("%s", conf.headline(len(addrs)))
	for _, line := range down {
		scr.printf("%s; going on without it", line)
	}
	if !canSuspend && !conf.noStop && !conf.noLock {
		scr.printf("no worker is stopped: this system has no SIGSTOP")
	}
	watch := newWatch(conf, scr)
	if err := watch.work(ctx, conf.jobs(addrs, place)); err != nil && ctx.Err() == nil {
		return false, err
	}
	scr.clear()
	if ctx.Err() != nil {
		scr.printf("stopped after %d of %d invoices", len(watch.billed), conf.invoices)
		return false, nil
	}
	result, err := book.audit(ctx)
	if err != nil {
		return false, err
	}
	scr.printf("\n%s", report(result, watch))
	return result.exactlyOnce() && watch.failures == 0, nil
}

// headline says what the run is going to do.
func (c *config) headline(nodes int) string {
	where, book, how := "embedded", "SQLite", fmt.Sprintf("one lock per customer (TTL %v)", c.ttl)
	if len(c.nodes) > 0 {
		where = "given"
	}
	if c.dsn != "" {
		book = "PostgreSQL"
	}
	if c.noLock {
		how = "no locks"
	}
	if c.noFence {
		how += ", no fence"
	}
	if c.chaos {
		how += ", chaos"
	}
	if c.work > c.ttl {
		how += fmt.Sprintf(", %v a charge", c.work)
	}
	return fmt.Sprintf("%d invoices of %d customers, %d worker processes, %s, seed %d\n%d %s Redis nodes, ledger in %s",
		c.invoices, c.customers, c.workers, how, c.seed, nodes, where, book)
}

// jobs returns one job per worker. Without chaos, if one is to be killed, it is
// whoever bills an invoice chosen here, one of those that come early, lest the
// run is over before the lock of the killed worker is.
func (c *config) jobs(nodes []string, place store) []job {
	var stallOn int64
	if c.kills() {
		rng := rand.New(rand.NewPCG(c.seed, 1<<32))
		stallOn = 1 + rng.Int64N(1+int64(c.invoices)/4)
	}
	var plan map[int64]moment
	if c.chaos {
		plan = worstMoments(c.invoices, c.seed)
	}
	all := make([]job, c.workers)
	for i := range all {
		all[i] = job{
			Worker: i + 1, Nodes: nodes, Store: place, TTL: c.ttl,
			Work: c.work, Seed: c.seed, NoLock: c.noLock, NoFence: c.noFence,
			StallOn: stallOn, Plan: plan,
		}
	}
	return all
}
