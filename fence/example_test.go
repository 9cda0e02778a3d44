// Runnable examples: the guard in memory, and stores with conditional writes.

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/quorumlock/redlock/fence"
)

func ExampleMemory() {
	ctx := context.Background()
	guard := fence.NewMemory()
	fmt.Println(guard.Check(ctx, "customer-42", 33))
	fmt.Println(guard.Check(ctx, "customer-42", 34)) // the next holder
	err := guard.Check(ctx, "customer-42", 33)       // the first one wakes up
	fmt.Println(errors.Is(err, fence.ErrStale))
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
	// true
	// fence: check "customer-42": stale fencing token: 33, after 34
}

// Accounts is a store in memory. One mutex covers the check and the access.
type Accounts struct {
	mu       sync.Mutex
	guard    fence.Memory
	balances map[string]int
}

func (a *Accounts) Balance(ctx context.Context, name string, token int64) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.guard.Check(ctx, name, token); err != nil {
		return 0, err
	}
	return a.balances[name], nil
}

func (a *Accounts) SetBalance(ctx context.Context, name string, token int64, balance int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.guard.Check(ctx, name, token); err != nil {
		return err
	}
	a.balances[name] = balance
	return nil
}

// A storage that is shown the token at reads and at writes loses no update, even
// if a holder sleeps through the end of its lease.
func Example() {
	ctx := context.Background()
	accounts := &Accounts{balances: map[string]int{"customer-42": 100}}

	slow, _ := accounts.Balance(ctx, "customer-42", 1)  // token 1 reads, and pauses
	quick, _ := accounts.Balance(ctx, "customer-42", 2) // its lease is over: token 2 reads
	fmt.Println("token 1:", accounts.SetBalance(ctx, "customer-42", 1, slow+10))
	fmt.Println("token 2:", accounts.SetBalance(ctx, "customer-42", 2, quick+5))
	fmt.Println(accounts.balances["customer-42"])
	// Output:
	// token 1: fence: check "customer-42": stale fencing token: 1, after 2
	// token 2: <nil>
	// 105
}

// In SQL, the check is the first statement of the transaction.
func ExampleDialect_Check() {
	charge := func(ctx context.Context, db *sql.DB, name string, token int64, cents int) error {
		tx, err := db.BeginTx(ctx, nil) // the lease's context: a lost lease rolls back
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after a commit
		if err := fence.Postgres.Check(ctx, tx, name, token); err != nil {
			return err
		}
		var balance int
		if err := tx.QueryRowContext(ctx, `SELECT cents FROM balances WHERE name = $1`, name).Scan(&balance); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE balances SET cents = $2 WHERE name = $1`, name, balance+cents); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = charge
}

// An Object carries the highest token that was presented for it. Its version
// stands for an ETag or a version column.
type Object struct {
	Token   int64 `json:",string"`
	Value   string
	version int
}

var errPreconditionFailed = errors.New("precondition failed")

// Put replaces the object if it still has the version of the new one, as a PUT
// with If-Match does.
func (o *Object) Put(put Object) (Object, error) {
	if put.version != o.version {
		return Object{}, errPreconditionFailed
	}
	put.version++
	*o = put
	return put, nil
}

// Claim presents a token and returns the object to work on.
func Claim(o *Object, token int64) (Object, error) {
	for {
		got := *o // a GET
		if got.Token > token {
			return Object{}, fence.ErrStale
		}
		got.Token = token
		claimed, err := o.Put(got)
		if !errors.Is(err, errPreconditionFailed) {
			return claimed, err
		}
	}
}

// A store that knows conditional writes fences without code of its own: holders
// write their token into the object before they work on it.
func Example_conditionalWrites() {
	stored := &Object{Value: "draft"}

	slow, _ := Claim(stored, 1)  // token 1 claims the object, and pauses
	quick, _ := Claim(stored, 2) // its lease is over: token 2 claims it

	slow.Value += ", by the first holder"
	_, err := stored.Put(slow)
	fmt.Println("token 1:", err)
	_, err = Claim(stored, 1)
	fmt.Println("token 1:", err)

	quick.Value += ", by the second holder"
	_, err = stored.Put(quick)
	fmt.Println("token 2:", err)
	fmt.Println(stored.Value)
	// Output:
	// token 1: precondition failed
	// token 1: stale fencing token
	// token 2: <nil>
	// draft, by the second holder
}
