// A database/sql driver that records statements and answers as it is told.

package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"slices"
	"testing"
)

// A statement is what arrived at a fakeSQL.
type statement struct {
	text string
	args []any
}

// An answer is what comes back for a statement: an error, or rows of one number,
// or the two numbers of a result.
type answer struct {
	err      error
	rows     []int64
	affected int64
	insertID int64
}

// fakeSQL is one connection. Answers go out in order; the last one repeats.
type fakeSQL struct {
	answers []answer
	seen    []statement
}

// open returns a database that consists of f.
func (f *fakeSQL) open(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(f)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// begin returns a transaction that ends with the test.
func (f *fakeSQL) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := f.open(t).BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (f *fakeSQL) next(text string, args []driver.NamedValue) (answer, error) {
	s := statement{text: text}
	for _, arg := range args {
		s.args = append(s.args, arg.Value)
	}
	f.seen = append(f.seen, s)
	a := f.answers[min(len(f.seen), len(f.answers))-1]
	return a, a.err
}

func (f *fakeSQL) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	a, err := f.next(text, args)
	return &fakeRows{slices.Clone(a.rows)}, err
}

func (f *fakeSQL) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	a, err := f.next(text, args)
	return fakeResult(a), err
}

func (f *fakeSQL) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fakeSQL) Driver() driver.Driver                        { return f }
func (f *fakeSQL) Open(string) (driver.Conn, error)             { return f, nil }
func (f *fakeSQL) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (f *fakeSQL) Begin() (driver.Tx, error)                    { return f, nil }
func (f *fakeSQL) Close() error                                 { return nil }
func (f *fakeSQL) Commit() error                                { return nil }
func (f *fakeSQL) Rollback() error                              { return nil }

type fakeResult answer

func (r fakeResult) LastInsertId() (int64, error) { return r.insertID, nil }
func (r fakeResult) RowsAffected() (int64, error) { return r.affected, nil }

type fakeRows struct{ left []int64 }

func (r *fakeRows) Columns() []string { return []string{"token"} }
func (r *fakeRows) Close() error      { return nil }

func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	dest[0], r.left = r.left[0], r.left[1:]
	return nil
}
