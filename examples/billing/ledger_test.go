// The ledger and its audit, in this process.

package main

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/quorumlock/redlock/fence"
)

// openBook returns a ledger with two customers and three invoices.
func openBook(t *testing.T) ledger {
	t.Helper()
	return fill(t, store{File: filepath.Join(t.TempDir(), "ledger #1?.db")}) // a name that needs quoting
}

func fill(t *testing.T, s store) ledger {
	t.Helper()
	book := open(t, s)
	err := book.create(t.Context(), 2, []invoice{{1, 1, 100}, {2, 2, 50}, {3, 1, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func open(t *testing.T, s store) ledger {
	t.Helper()
	db, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return ledger{db, s.fence()}
}

func atOnce() {}

// billNext does what a worker does, without lock and charge.
func billNext(t *testing.T, book ledger, customer int64, worker int) {
	t.Helper()
	inv, total, ok, err := book.nextOpen(t.Context(), customer, claim{})
	if err != nil || !ok {
		t.Fatalf("next open invoice of %d: %v, %v", customer, ok, err)
	}
	if err := book.record(t.Context(), inv, total, worker, claim{}, atOnce); err != nil {
		t.Fatal(err)
	}
}

func wantAudit(t *testing.T, book ledger, want audit) {
	t.Helper()
	got, err := book.audit(t.Context())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("audit: %v\n got %+v\nwant %+v", err, got, want)
	}
}

func TestLedgerBills(t *testing.T) {
	t.Parallel()
	book := openBook(t)
	billNext(t, book, 1, 7)
	wantAudit(t, book, audit{once: 1, open: 2, invoiced: 1150, charged: 100, accounts: 100, wrongAccounts: 2, byWorker: map[int]int{7: 1}})

	inv, total, ok, err := book.nextOpen(t.Context(), 1, claim{})
	if want := (invoice{3, 1, 1000}); err != nil || !ok || inv != want || total != 100 {
		t.Errorf("second invoice: %v, %d, %v, %v", inv, total, ok, err)
	}
	billNext(t, book, 1, 7)
	billNext(t, book, 2, 8)
	if _, _, ok, err := book.nextOpen(t.Context(), 1, claim{}); ok || err != nil {
		t.Errorf("a third invoice: %v, %v", ok, err)
	}
	if open, err := book.openCustomers(t.Context()); len(open) > 0 || err != nil {
		t.Errorf("open customers: %v, %v", open, err)
	}
	want := audit{once: 3, invoiced: 1150, charged: 1150, accounts: 1150, byWorker: map[int]int{7: 2, 8: 1}}
	wantAudit(t, book, want)
	if !want.exactlyOnce() {
		t.Error("not exactly once")
	}
}

// TestLedgerUndoes wants nothing of a charge to stay when the context has ended
// by the time of the commit.
func TestLedgerUndoes(t *testing.T) {
	t.Parallel()
	book := openBook(t)
	inv, total, _, _ := book.nextOpen(t.Context(), 1, claim{})
	ctx, cancel := context.WithCancel(t.Context())
	if err := book.record(ctx, inv, total, 7, claim{}, cancel); err == nil {
		t.Error("recorded after the end of the context")
	}
	wantAudit(t, book, audit{open: 3, invoiced: 1150, wrongAccounts: 2, byWorker: map[int]int{}})
}

func TestLedgerFence(t *testing.T) {
	t.Parallel()
	testFence(t, openBook(t))
}

// testFence wants a holder refused as soon as a newer one has so much as looked,
// and nothing of what it wrote to stay.
func testFence(t *testing.T, book ledger) {
	older, newer := claim{"customer-01", 7}, claim{"customer-01", 8}
	inv, total, ok, err := book.nextOpen(t.Context(), 1, older)
	if !ok || err != nil {
		t.Fatalf("the older holder reads: %v, %v", ok, err)
	}
	if _, _, ok, err := book.nextOpen(t.Context(), 1, newer); !ok || err != nil {
		t.Fatalf("the newer holder reads: %v, %v", ok, err)
	}
	if err := book.record(t.Context(), inv, total, 1, older, atOnce); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the older holder writes: %v", err)
	}
	if _, _, ok, err := book.nextOpen(t.Context(), 1, older); ok || !errors.Is(err, fence.ErrStale) {
		t.Errorf("the older holder reads again: %v, %v", ok, err)
	}
	wantAudit(t, book, audit{open: 3, invoiced: 1150, wrongAccounts: 2, byWorker: map[int]int{}})

	// An equal token is the same holder, and customers are apart.
	if err := book.record(t.Context(), inv, total, 2, newer, atOnce); err != nil {
		t.Errorf("the newer holder writes: %v", err)
	}
	other := claim{"customer-02", 3}
	inv, total, ok, err = book.nextOpen(t.Context(), 2, other)
	if !ok || err != nil {
		t.Fatalf("a holder of another lock reads: %v, %v", ok, err)
	}
	if err := book.record(t.Context(), inv, total, 3, other, atOnce); err != nil {
		t.Errorf("a holder of another lock writes: %v", err)
	}
	wantAudit(t, book, audit{once: 2, open: 1, invoiced: 1150, charged: 150, accounts: 150, wrongAccounts: 1, byWorker: map[int]int{2: 1, 3: 1}})

	// A write alone presents its token as well.
	if err := book.record(t.Context(), invoice{3, 1, 1000}, 100, 4, claim{"customer-01", 9}, atOnce); err != nil {
		t.Errorf("a third holder writes: %v", err)
	}
	if err := book.record(t.Context(), invoice{3, 1, 1000}, 100, 2, newer, atOnce); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the second holder writes after the third: %v", err)
	}
}

// TestLedgerHidesNothing wants two workers that both believe to be alone to be
// seen in the ledger: in the charges, and in the account of the customer.
func TestLedgerHidesNothing(t *testing.T) {
	t.Parallel()
	book := openBook(t)
	inv, total, _, _ := book.nextOpen(t.Context(), 1, claim{})
	for worker := range 2 {
		if err := book.record(t.Context(), inv, total, worker, claim{}, atOnce); err != nil {
			t.Fatal(err)
		}
	}
	wantAudit(t, book, audit{
		twice: 1, open: 2, doubles: []double{{1, 1, []int{0, 1}}},
		invoiced: 1150, charged: 200, accounts: 100, wrongAccounts: 2, byWorker: map[int]int{0: 1, 1: 1},
	})

	// Different invoices of one customer, totals read before either is written.
	book = openBook(t)
	for worker, inv := range []invoice{{1, 1, 100}, {3, 1, 1000}} {
		if err := book.record(t.Context(), inv, 0, worker, claim{}, atOnce); err != nil {
			t.Fatal(err)
		}
	}
	billNext(t, book, 2, 2)
	lost := audit{once: 3, invoiced: 1150, charged: 1150, accounts: 1050, wrongAccounts: 1, byWorker: map[int]int{0: 1, 1: 1, 2: 1}}
	wantAudit(t, book, lost)
	if lost.exactlyOnce() {
		t.Error("exactly once, although an update is lost")
	}
}

func TestAuditState(t *testing.T) {
	t.Parallel()
	book := openBook(t)
	if _, err := book.db.ExecContext(t.Context(), `UPDATE invoices SET state = 'billed' WHERE id = 2`); err != nil {
		t.Fatal(err)
	}
	wantAudit(t, book, audit{open: 3, wrongState: 1, invoiced: 1150, wrongAccounts: 2, byWorker: map[int]int{}})
}

// TestLedgerShared lets connections write at once, as processes do: they wait
// for each other.
func TestLedgerShared(t *testing.T) {
	t.Parallel()
	const writers, writes = 4, 50
	file := store{File: filepath.Join(t.TempDir(), "ledger.db")}
	book := open(t, file)
	if err := book.create(t.Context(), writers, nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range writers {
		other := open(t, file)
		wg.Go(func() {
			for i := range writes {
				inv := invoice{int64(worker*writes + i), int64(worker + 1), 1}
				if err := other.record(t.Context(), inv, int64(i), worker, claim{}, atOnce); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := book.audit(t.Context())
	if err != nil || got.charged != writers*writes || got.accounts != writers*writes {
		t.Errorf("audit: %+v, %v", got, err)
	}
}

func TestSampleInvoices(t *testing.T) {
	t.Parallel()
	all := sampleInvoices(240, 20, 5)
	if !slices.Equal(all, sampleInvoices(240, 20, 5)) {
		t.Error("one seed, two ledgers")
	}
	if slices.Equal(all, sampleInvoices(240, 20, 6)) {
		t.Error("two seeds, one ledger")
	}
	count := make(map[int64]int)
	for i, inv := range all {
		count[inv.customer]++
		if inv.id != int64(i+1) || inv.customer < 1 || inv.customer > 20 || inv.cents < 100 {
			t.Errorf("invoice %d: %+v", i, inv)
		}
	}
	if len(count) != 20 || count[1] <= count[20] {
		t.Errorf("invoices by customer: %v", count)
	}
}
