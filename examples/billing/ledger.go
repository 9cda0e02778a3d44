// The ledger: customers, their invoices, and the charges made for them.

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

// The tables on purpose do nothing against double billing: no key on the
// charges, no foreign keys, no check of the state in an update, a balance that
// is read in one transaction and written in another. What keeps two workers
// apart is the lock, and the fence for one that has lost it unawares, so that
// either shows when it is broken. The types and the statements of this file mean
// the same in SQLite and PostgreSQL.
var tables = []string{
	`CREATE TABLE customers (id BIGINT PRIMARY KEY, billed_cents BIGINT NOT NULL)`,
	`CREATE TABLE invoices (id BIGINT PRIMARY KEY, customer_id BIGINT NOT NULL, amount_cents BIGINT NOT NULL, state TEXT NOT NULL)`,
	`CREATE TABLE charges (invoice_id BIGINT NOT NULL, amount_cents BIGINT NOT NULL, worker BIGINT NOT NULL)`,
	`CREATE INDEX invoices_by_state ON invoices (state, customer_id)`,
}

type ledger struct {
	db    *sql.DB
	fence fence.Dialect
}

// A claim is the lock by which a worker reads and writes what belongs to a
// customer. The zero value claims nothing, and is checked by nobody.
type claim struct {
	resource string
	token    int64
}

// claimOf returns the claim of whoever holds a lease.
func claimOf(l *redlock.Lease) claim { return claim{l.Name(), l.FencingToken()} }

// present shows a claim to the fence. Let it be the first thing in tx: from then
// on no older holder of the lock can write, and as long as tx lasts no newer one
// can read.
func (l ledger) present(ctx context.Context, tx *sql.Tx, c claim) error {
	if c == (claim{}) {
		return nil
	}
	return l.fence.Check(ctx, tx, c.resource, c.token)
}

// An invoice is an amount that a customer is to be charged once.
type invoice struct {
	id, customer, cents int64
}

// sampleInvoices spreads n invoices over the customers, unevenly: the first
// customers have more of them, so that workers meet there.
func sampleInvoices(n, customers int, seed uint64) []invoice {
	rng := rand.New(rand.NewPCG(seed, 0))
	all := make([]invoice, n)
	for i := range all {
		customer := i // each has one, as long as there are enough
		if i >= customers {
			customer = min(rng.IntN(customers), rng.IntN(customers))
		}
		all[i] = invoice{id: int64(i + 1), customer: int64(customer + 1), cents: 100 + rng.Int64N(20_000)}
	}
	return all
}

// create makes the tables, that of the fence among them, and fills them.
func (l ledger) create(ctx context.Context, customers int, invoices []invoice) error {
	if err := l.fence.CreateTable(ctx, l.db); err != nil {
		return err
	}
	return l.write(ctx, func(tx *sql.Tx) error {
		for _, table := range tables {
			if _, err := tx.ExecContext(ctx, table); err != nil {
				return err
			}
		}
		for id := range customers {
			if _, err := tx.ExecContext(ctx, `INSERT INTO customers (id, billed_cents) VALUES ($1, 0)`, id+1); err != nil {
				return err
			}
		}
		const insert = `INSERT INTO invoices (id, customer_id, amount_cents, state) VALUES ($1, $2, $3, 'open')`
		for _, inv := range invoices {
			if _, err := tx.ExecContext(ctx, insert, inv.id, inv.customer, inv.cents); err != nil {
				return err
			}
		}
		return nil
	})
}

// openCustomers returns the customers that have an open invoice.
func (l ledger) openCustomers(ctx context.Context) ([]int64, error) {
	rows, err := l.db.QueryContext(ctx, `SELECT DISTINCT customer_id FROM invoices WHERE state = 'open' ORDER BY customer_id`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	var all []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, rows.Err()
}

// nextOpen returns a customer's first open invoice and what the customer has
// been billed so far; false if none is open. The claim is stored with it, in one
// transaction, so that what was read can only be outdated by a newer holder.
func (l ledger) nextOpen(ctx context.Context, customer int64, c claim) (inv invoice, billed int64, ok bool, err error) {
	inv.customer = customer
	err = l.write(ctx, func(tx *sql.Tx) error {
		if err := l.present(ctx, tx, c); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx,
			`SELECT id, amount_cents FROM invoices WHERE state = 'open' AND customer_id = $1 ORDER BY id LIMIT 1`,
			customer).Scan(&inv.id, &inv.cents)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		return tx.QueryRowContext(ctx, `SELECT billed_cents FROM customers WHERE id = $1`, customer).Scan(&billed)
	})
	return inv, billed, ok && err == nil, err
}

// record writes a charge, the state of its invoice and the customer's new total
// in one transaction: a worker that dies before the commit has billed nothing.
// So has one whose claim is stale. Last is called when nothing is left but the
// commit.
func (l ledger) record(ctx context.Context, inv invoice, billed int64, worker int, c claim, last func()) error {
	return l.write(ctx, func(tx *sql.Tx) error {
		if err := l.present(ctx, tx, c); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO charges (invoice_id, amount_cents, worker) VALUES ($1, $2, $3)`, inv.id, inv.cents, worker)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE invoices SET state = 'billed' WHERE id = $1`, inv.id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE customers SET billed_cents = $1 WHERE id = $2`, billed+inv.cents, inv.customer); err != nil {
			return err
		}
		last()
		return nil
	})
}

// write runs fn in one transaction.
func (l ledger) write(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // the first error says more; the server undoes it in any case
		return err
	}
	return tx.Commit()
}
