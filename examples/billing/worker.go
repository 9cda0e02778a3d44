// What a worker does: bill open invoices, each under its customer's lock.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

type worker struct {
	job
	client  *redlock.Client
	ledger  ledger
	rng     *rand.Rand
	out     *json.Encoder
	asked   int   // locks asked for
	invoice int64 // the latest

	started chan struct{} // closed by the order to begin
	hang    atomic.Bool   // set by the order to hang
	resumed chan struct{} // closed by the order to resume
	goOn    chan struct{} // gets one value for each order to go on; closed when no more come
}

// round bills one invoice of a random customer that nobody else is billing. If
// somebody has every customer that is left, it waits for one of them. It
// returns false when no invoice is open.
func (w *worker) round(ctx context.Context) (left bool, err error) {
	customers, err := w.ledger.openCustomers(ctx)
	if err != nil || len(customers) == 0 {
		return false, err
	}
	w.rng.Shuffle(len(customers), func(i, j int) { customers[i], customers[j] = customers[j], customers[i] })
	if w.NoLock {
		return true, w.settle(ctx, customers[0], nil)
	}
	for _, customer := range customers {
		if err := w.bill(ctx, customer, redlock.WithMaxAttempts(1)); !notGranted(err) {
			return true, err
		}
	}
	w.say(event{Kind: waiting, Customer: customers[0]})
	return true, w.bill(ctx, customers[0])
}

// notGranted tells whether an attempt failed in a way that another may not.
func notGranted(err error) bool {
	return errors.Is(err, redlock.ErrTaken) || errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrExpired)
}

// bill settles the next invoice of a customer under the customer's lock: all
// invoices of a customer go into one account, so two workers must not settle
// two of them at once either.
func (w *worker) bill(ctx context.Context, customer int64, opts ...redlock.Option) error {
	mutex, err := w.client.NewMutex("billing/"+customerName(customer), opts...)
	if err != nil {
		return err
	}
	w.asked++
	w.invoice = 0
	since := time.Now()
	var lease *redlock.Lease
	var failure error
	var gaveUp bool // and has said so
	err = mutex.Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
		w.say(event{Kind: held, Customer: customer, Wait: time.Since(since), Left: l.Remaining()})
		lease = l
		failure = w.settle(ctx, customer, l)
		if errors.Is(failure, fence.ErrStale) {
			gaveUp = true
			w.say(event{Kind: refused, Customer: customer, Invoice: w.invoice, Text: failure.Error()})
		} else if gone := l.Err(); failure != nil && gone != nil && ctx.Err() != nil {
			gaveUp = true
			w.say(event{Kind: lost, Customer: customer, Invoice: w.invoice, Text: gone.Error()})
		}
		return failure
	})
	switch {
	case err == nil, lease == nil: // went well, or was not granted
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case gaveUp: // the invoice is somebody else's, now or later
		return nil
	case failure != nil && !errors.Is(err, redlock.ErrLost):
		return failure
	default:
		// The work was done and the nodes could not confirm the unlock: the TTL
		// frees them. Or the lease ended right after the work had failed.
		w.say(event{Kind: note, Customer: customer, Text: err.Error()})
		return nil
	}
}

// settle charges a customer's next open invoice. Look-up, charge and record
// are three steps, apart in time: without the lock they are a race. Lease is
// nil when there is no lock.
func (w *worker) settle(ctx context.Context, customer int64, lease *redlock.Lease) error {
	var c claim
	if lease != nil && !w.NoFence {
		c = claimOf(lease)
	}
	inv, total, ok, err := w.ledger.nextOpen(ctx, customer, c)
	if err != nil || !ok {
		return err
	}
	w.invoice = inv.id
	since := time.Now()
	if err := w.charge(ctx, inv, lease); err != nil {
		return err
	}
	if lease != nil {
		if err := lease.Err(); err != nil {
			return err
		}
	}
	// However late this look at the lease is, the commit comes later, and a pause
	// in between lets the lease end unseen. Only the fence sees that.
	w.poise(checked, inv)
	if err := w.record(ctx, inv, total, c); err != nil {
		return err
	}
	w.say(event{Kind: billed, Customer: customer, Invoice: inv.id, Cents: inv.cents, Hold: time.Since(since)})
	w.poise(committed, inv)
	return nil
}

// record commits a charge. The end of ctx does not cut it off: whether half of
// a commit counts, nobody could tell.
func (w *worker) record(ctx context.Context, inv invoice, total int64, c claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return w.ledger.record(ctx, inv, total, w.Worker, c, func() { w.poise(written, inv) })
}

// charge stands for the call to a payment service: it takes a while, and ends
// early when ctx does, that is, when the lease does.
func (w *worker) charge(ctx context.Context, inv invoice, lease *redlock.Lease) error {
	w.poise(charging, inv)
	if !w.isResumed() && (inv.id == w.StallOn || w.hang.Load()) {
		w.say(event{Kind: stalled, Customer: inv.customer, Invoice: inv.id, Left: lease.Remaining()})
		select {
		case <-w.resumed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		// Whoever was stopped may see the order to go on first. The lease asks
		// the clock.
		if err := lease.Err(); err != nil {
			return err
		}
	}
	answered := time.NewTimer(w.Work/2 + time.Duration(w.rng.Int64N(int64(w.Work))))
	defer answered.Stop()
	select {
	case <-answered.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func customerName(id int64) string { return fmt.Sprintf("customer-%02d", id) }
