// The audit: what the ledger says was billed, whatever the workers believe.

package main

import (
	"context"
	"database/sql"
	"fmt"
)

// An audit is the verdict on a ledger. Amounts are in cents.
type audit struct {
	once, twice, open int // invoices with one charge, with more, and without
	wrongState        int // invoices whose state and charges disagree
	doubles           []double
	invoiced          int64 // sum over the invoices
	charged           int64 // sum over the charges
	accounts          int64 // sum over the customers' totals
	wrongAccounts     int   // customers whose total is not that of their invoices
	byWorker          map[int]int
}

// A double is an invoice that was charged more than once.
type double struct {
	invoice, customer int64
	workers           []int
}

// exactlyOnce tells whether every invoice was charged once and every account
// shows it.
func (a audit) exactlyOnce() bool {
	return a.twice == 0 && a.open == 0 && a.wrongState == 0 && a.reconciled()
}

func (a audit) reconciled() bool {
	return a.invoiced == a.charged && a.charged == a.accounts && a.wrongAccounts == 0
}

// audit reads the whole ledger. It counts in Go, not in SQL, so that it shares
// nothing with the statements that billed.
func (l ledger) audit(ctx context.Context) (audit, error) {
	a := audit{byWorker: make(map[int]int)}
	workers := make(map[int64][]int) // by invoice
	err := l.each(ctx, `SELECT invoice_id, amount_cents, worker FROM charges`, func(rows *sql.Rows) error {
		var id, cents int64
		var worker int
		if err := rows.Scan(&id, &cents, &worker); err != nil {
			return err
		}
		workers[id] = append(workers[id], worker)
		a.byWorker[worker]++
		a.charged += cents
		return nil
	})
	if err != nil {
		return audit{}, fmt.Errorf("audit the charges: %w", err)
	}

	due := make(map[int64]int64) // by customer
	err = l.each(ctx, `SELECT id, customer_id, amount_cents, state FROM invoices ORDER BY id`, func(rows *sql.Rows) error {
		var id, customer, cents int64
		var state string
		if err := rows.Scan(&id, &customer, &cents, &state); err != nil {
			return err
		}
		due[customer] += cents
		a.invoiced += cents
		switch by := workers[id]; len(by) {
		case 0:
			a.open++
		case 1:
			a.once++
		default:
			a.twice++
			a.doubles = append(a.doubles, double{id, customer, by})
		}
		if (state == "billed") != (len(workers[id]) > 0) {
			a.wrongState++
		}
		return nil
	})
	if err != nil {
		return audit{}, fmt.Errorf("audit the invoices: %w", err)
	}

	err = l.each(ctx, `SELECT id, billed_cents FROM customers`, func(rows *sql.Rows) error {
		var id, cents int64
		if err := rows.Scan(&id, &cents); err != nil {
			return err
		}
		a.accounts += cents
		if cents != due[id] {
			a.wrongAccounts++
		}
		return nil
	})
	if err != nil {
		return audit{}, fmt.Errorf("audit the accounts: %w", err)
	}
	return a, nil
}

func (l ledger) each(ctx context.Context, query string, fn func(*sql.Rows) error) error {
	rows, err := l.db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
