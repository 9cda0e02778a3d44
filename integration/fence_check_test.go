// The SQL guards, one transaction at a time: verdicts, names, numbers, setups.

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock/fence"
)

// goroutines is how many callers the concurrent tests have.
const goroutines = 64

func TestFence(t *testing.T) {
	for name, start := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t)
			t.Run("CreateTable", e.testCreateTable)
			t.Run("AgainstModel", e.testAgainstModel)
			t.Run("Names", e.testNames)
			t.Run("ReadOnly", e.testReadOnly)
			t.Run("Interleavings", e.testInterleavings)
			t.Run("FirstInsertRolledBack", e.testFirstInsertRolledBack)
			t.Run("OtherResources", e.testOtherResources)
			t.Run("Canceled", e.testCanceled)
			t.Run("Order", e.testOrder)
			t.Run("OrderBites", e.testOrderBites)
			t.Run("PausedHolder", e.testPausedHolder)
			t.Run("LostUpdates", e.testLostUpdates)
		})
	}
}

func (e *engine) testCreateTable(t *testing.T) {
	db := e.open(t, "default")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := e.CreateTable(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	inTx(t, db, func(tx *sql.Tx) { verdict(t, e.Check(t.Context(), tx, "r", 5), 0) })
	if err := e.CreateTable(t.Context(), db); err != nil {
		t.Error(err)
	}
	if got, want := stored(t, db), map[string]int64{"r": 5}; !maps.Equal(got, want) {
		t.Errorf("the table holds %v, want %v: CreateTable must leave a table as it is", got, want)
	}
}

// inTx runs fn in a transaction and commits it.
func inTx(t *testing.T, db *sql.DB, fn func(*sql.Tx)) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	fn(tx)
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

// verdict checks that err is nil, or a refusal because of highest.
func verdict(t *testing.T, err error, highest int64) {
	t.Helper()
	stale, ok := errors.AsType[*fence.StaleError](err)
	switch {
	case highest == 0 && err != nil:
		t.Errorf("refused: %v", err)
	case highest != 0 && !ok:
		t.Errorf("%v, want a refusal because of %d", err, highest)
	case highest != 0 && stale.Highest != highest:
		t.Errorf("%v, want a refusal because of %d", err, highest)
	}
}

// testAgainstModel runs random transactions, some of which are rolled back, and
// keeps the same books in a map.
func (e *engine) testAgainstModel(t *testing.T) {
	tokens := []int64{1, 2, 3, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, setup := range slices.Sorted(maps.Keys(e.setups)) {
		t.Run(setup, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			db := e.fenced(t, setup)
			model := make(map[string]int64)
			for range 200 {
				after := maps.Clone(model)
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 1 + rng.IntN(4) {
					resource := fmt.Sprint("resource-", rng.IntN(12))
					token := tokens[rng.IntN(len(tokens))]
					if rng.IntN(2) == 0 {
						token = after[resource] + int64(rng.IntN(3)-1) // a neighbour of what is stored
						if token <= 0 {
							token = 1
						}
					}
					highest := after[resource]
					if token >= highest {
						after[resource], highest = token, 0
					}
					verdict(t, e.Check(t.Context(), tx, resource, token), highest)
				}
				if rng.IntN(3) == 0 {
					err = tx.Rollback()
				} else {
					err = tx.Commit()
					model = after
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := stored(t, db); !maps.Equal(got, model) {
				t.Errorf("the table holds %v\nwant %v", got, model)
			}
		})
	}
}

// testNames presents lower and lower tokens under names that a database might
// take for equal.
func (e *engine) testNames(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	names := []string{
		"a", "A", "a ", " a", "a\t", "ä", "a\u0308", "Ä", "á", "ａ", "ss", "ß", "a\x00", "a\x00b",
		"\xff", "\xfe", "\xff\xfe", "\xed\xa0\x80", "😀", "😁", "İ", "i", "I", "ı", `\`, `\\`, "'", `"`, "%", "_",
		long, long[1:], long[1:] + "y", "y" + long[1:],
	}
	for _, setup := range slices.Sorted(maps.Keys(e.setups)) {
		db := e.fenced(t, setup)
		inTx(t, db, func(tx *sql.Tx) {
			for i, name := range names {
				token := int64(len(names) - i)
				if err := e.Check(t.Context(), tx, name, token); err != nil {
					t.Errorf("%s: the name %.20q is taken for another: %v", setup, name, err)
				}
			}
		})
		inTx(t, db, func(tx *sql.Tx) {
			for i, name := range names {
				verdict(t, e.Check(t.Context(), tx, name, int64(len(names)-i)), 0)
			}
		})
		var rows int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM redlock_fence").Scan(&rows); err != nil || rows != len(names) {
			t.Errorf("%s: %d rows (%v), want %d", setup, rows, err, len(names))
		}
	}

	db := e.fenced(t, "default")
	inTx(t, db, func(tx *sql.Tx) { verdict(t, e.Check(t.Context(), tx, "\xffä'\"\\\x00"+long, 1), 0) })
	want := map[string]int64{(`\xff\u00e4'\"\\\x00` + long)[:200] + "...": 1}
	if got := stored(t, db); !reflect.DeepEqual(got, want) {
		t.Errorf("for people the table says %v, want %v", got, want)
	}
}

// A transaction that cannot write cannot guard.
func (e *engine) testReadOnly(t *testing.T) {
	db := e.fenced(t, "default")
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := e.Check(t.Context(), tx, "r", 1); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("%v, want the database's refusal", err)
	}
}
