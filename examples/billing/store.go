// Where the ledger lives: an SQLite file, or a schema of a PostgreSQL database.

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver" // registers "sqlite3"
	"github.com/quorumlock/redlock/fence"
)

// A store says where a ledger is. The parent makes one and hands it to the
// workers; exactly one of the two places is set.
type store struct {
	File string `json:"file,omitempty"`

	DSN    string `json:"dsn,omitempty"`
	Schema string `json:"schema,omitempty"` // of this run alone
}

// newStore makes an empty place for one run: under the DSN if there is one,
// else in a temporary folder. The returned function removes it.
func newStore(ctx context.Context, dsn string) (store, func() error, error) {
	if dsn == "" {
		dir, err := os.MkdirTemp("", "redlock-billing-")
		if err != nil {
			return store{}, nil, err
		}
		return store{File: filepath.Join(dir, "ledger.db")}, func() error { return os.RemoveAll(dir) }, nil
	}
	s := store{DSN: dsn, Schema: "redlock_billing_" + strings.ToLower(rand.Text()[:10])}
	if err := s.schema(ctx, "CREATE SCHEMA "+s.Schema); err != nil {
		return store{}, nil, fmt.Errorf("create a schema for the ledger: %w", err)
	}
	remove := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return s.schema(ctx, "DROP SCHEMA "+s.Schema+" CASCADE")
	}
	return s, remove, nil
}

func (s store) schema(ctx context.Context, statement string) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

// open returns a database of one connection: a worker bills one invoice at a
// time.
func (s store) open() (*sql.DB, error) {
	db, err := s.connector()
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// fence is how the database there is fenced.
func (s store) fence() fence.Dialect {
	if s.DSN != "" {
		return fence.Postgres
	}
	return fence.SQLite
}

func (s store) connector() (*sql.DB, error) {
	if s.DSN != "" {
		conf, err := pgx.ParseConfig(s.DSN)
		if err != nil {
			return nil, err
		}
		conf.RuntimeParams["search_path"] = s.Schema
		return stdlib.OpenDB(*conf), nil
	}
	// A write-ahead log lets the workers read while one of them writes; the
	// timeout makes a second writer wait instead of fail.
	path := filepath.ToSlash(s.File)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	pragmas := []string{"busy_timeout(20000)", "journal_mode(wal)", "synchronous(normal)"}
	uri := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return sql.Open("sqlite3", uri.String())
}

// checkDSN tells whether the driver understands a DSN, without its password in
// the error.
func checkDSN(dsn string) error {
	if _, err := pgx.ParseConfig(dsn); err != nil {
		return fmt.Errorf("want a PostgreSQL URL or key=value list: %w", err)
	}
	return nil
}
