// A guard in a table of an SQL database.

package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// A Dialect is the SQL of one kind of database. It has no default.
type Dialect int

const (
	Postgres Dialect = iota + 1 // PostgreSQL 9.5 or later
	MySQL                       // MySQL with InnoDB, and MariaDB
	SQLite                      // SQLite 3.35 or later
)

func (d Dialect) String() string {
	switch d {
	case Postgres:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

var (
	errNoTx       = errors.New("no transaction")
	errBadDialect = errors.New("unknown dialect")
)

// CreateTable creates the table redlock_fence, if there is none. Several
// processes may do so at once. Migrations can use [PostgresSchema],
// [MySQLSchema] or [SQLiteSchema] instead.
func (d Dialect) CreateTable(ctx context.Context, db *sql.DB) error {
	var schema string
	tries := 1
	switch d {
	case Postgres:
		schema = PostgresSchema
		// If two sessions create a table at once, the one that comes second
		// gets an error about a duplicate in the catalogue, IF NOT EXISTS or
		// not. By then the first has committed.
		tries = 2
	case MySQL:
		schema = MySQLSchema
	case SQLite:
		schema = SQLiteSchema
	default:
		return fmt.Errorf("fence: create table: %w: %v", errBadDialect, d)
	}
	var err error
	for range tries {
		if _, err = db.ExecContext(ctx, schema); err == nil {
			return nil
		}
	}
	return fmt.Errorf("fence: create table: %w", err)
}

// Check presents a token for a resource, as [Guard] describes it, in the table
// redlock_fence and as a part of tx. Let it be the first statement of every
// transaction that reads or writes the resource:
//
//	tx, err := db.BeginTx(lease.Context(), nil)
//	...
//	defer tx.Rollback()
//	if err := fence.Postgres.Check(ctx, tx, lease.Name(), lease.FencingToken()); err != nil {
//		return err
//	}
//	... // read and write in tx
//	return tx.Commit()
//
// It needs a transaction, since the row that it writes stays locked until tx
// ends. Transactions of one resource thus run one after the other, each sees
// what those before it committed, and no token can be presented between the
// check and the commit. With tx a token is stored or forgotten.
//
// The table has to be there: see [Dialect.CreateTable].
//
// After an error, roll back. A *[StaleError] means that the lock is lost. Other
// errors are the driver's, wrapped, and among them are those after which the
// transaction may be run again: deadlock, lock timeout, serialization failure,
// busy database. At no isolation level is the answer wrong for want of such an
// error. But MySQL's REPEATABLE READ reads from a snapshot that is as old as the
// first SELECT of the transaction: one more reason to check before it.
//
// Transactions that check several resources avoid deadlocks by one order of them
// for all. On MySQL, a check sets the session's LAST_INSERT_ID().
func (d Dialect) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	if err := validate(resource, token); err != nil {
		return err
	}
	if tx == nil {
		return failed(ctx, resource, errNoTx)
	}
	highest, err := d.present(ctx, tx, resource, token)
	switch {
	case err != nil:
		return failed(ctx, resource, err)
	case highest > token:
		return &StaleError{Resource: resource, Token: token, Highest: highest}
	case highest < token:
		return failed(ctx, resource, fmt.Errorf("the table redlock_fence answered %d to token %d", highest, token))
	}
	return nil
}

// present stores the token if it is the highest, and returns the highest.
func (d Dialect) present(ctx context.Context, tx *sql.Tx, resource string, token int64) (highest int64, err error) {
	hash, label := key(resource)
	switch d {
	case Postgres:
		err = tx.QueryRowContext(ctx, postgresPresent, hash, label, token).Scan(&highest)
	case MySQL:
		var res sql.Result
		if res, err = tx.ExecContext(ctx, mysqlPresent, hash, label, token, token); err == nil {
			highest, err = mysqlHighest(res, token)
		}
	case SQLite:
		err = tx.QueryRowContext(ctx, sqlitePresent, hash, label, token).Scan(&highest)
	default:
		err = fmt.Errorf("%w: %v", errBadDialect, d)
	}
	return highest, err
}

// mysqlHighest reads the result of mysqlPresent. MySQL has no RETURNING, so the
// number comes as the insert ID, which the statement sets for a row that was
// there before (counted as two), and not for a new one.
func mysqlHighest(res sql.Result, token int64) (int64, error) {
	rows, err := res.RowsAffected()
	if err != nil {
		return 0, err
	}
	id, err := res.LastInsertId()
	switch {
	case err != nil:
		return 0, err
	case rows == 1 && id == 0:
		return token, nil
	case rows == 2:
		return id, nil
	}
	return 0, fmt.Errorf("the table redlock_fence answered with %d rows and ID %d", rows, id)
}
