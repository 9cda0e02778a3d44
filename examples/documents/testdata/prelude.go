// What a fragment in a document may use without declaring it, and what runs them.

package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/examples/internal/nodes"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/redlocktest"
	"github.com/redis/go-redis/v9"
)

var (
	ctx     context.Context
	clients []redis.UniversalClient // of five nodes
	client  *redlock.Client         // on these
	mutex   *redlock.Mutex          // "customer-42", which is free
	lease   *redlock.Lease          // of "invoice-7", held
	rs      *redsync.Redsync        // on the same nodes
	cluster *redlocktest.Cluster    // five others
	logger  = slog.New(slog.DiscardHandler)
	db      *sql.DB // with the fence's table
	tx      *sql.Tx
	err     error
)

// bill stands for work under a lock.
func bill(ctx context.Context, token ...int64) error {
	if len(token) > 0 && token[0] <= 0 {
		return fmt.Errorf("token %d", token[0])
	}
	return ctx.Err()
}

// A block is a fragment.
type block struct {
	place string
	run   func() error
}

var blocks []block

func main() {
	log.SetOutput(os.Stdout)
	set, err := nodes.Open(10 * time.Second)
	if err != nil {
		log.Fatal(err)
	}
	failed := false
	for _, b := range blocks {
		if err := try(set, b); err != nil {
			failed = true
			fmt.Printf("FAIL %s: %v\n", b.place, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// try runs one fragment with everything new but the nodes.
func try(set *nodes.Nodes, b block) error {
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	end, err := prepare(set)
	if err != nil {
		return err
	}
	defer end()
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- fmt.Errorf("panic: %v", p)
			}
		}()
		ended <- b.run()
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(30 * time.Second):
		return fmt.Errorf("has not ended after 30s")
	}
}

func prepare(set *nodes.Nodes) (end func(), err error) {
	if clients, err = set.Dial(); err != nil {
		return nil, err
	}
	pools := make([]redsyncredis.Pool, len(clients))
	for i, c := range clients {
		pools[i] = goredis.NewPool(c)
	}
	rs = redsync.New(pools...)
	cluster = redlocktest.New(5)
	if client, err = redlock.New(redlock.Redis(clients...)); err != nil {
		return nil, err
	}
	if mutex, err = client.NewMutex("customer-42"); err != nil {
		return nil, err
	}
	held, err := client.NewMutex("invoice-7")
	if err != nil {
		return nil, err
	}
	if lease, err = held.Lock(ctx); err != nil {
		return nil, err
	}
	opened := client // a fragment may put another one there
	if db, err = driver.Open("file:memory?mode=memory", greatest); err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := fence.SQLite.CreateTable(ctx, db); err != nil {
		return nil, err
	}
	if tx, err = db.BeginTx(ctx, nil); err != nil {
		return nil, err
	}
	return func() {
		_ = tx.Rollback()
		_ = db.Close()
		_ = opened.Close()
	}, nil
}

// greatest is what SQLite lacks to stand in for PostgreSQL.
func greatest(c *sqlite3.Conn) error {
	return c.CreateFunction("greatest", 2, sqlite3.DETERMINISTIC, func(ctx sqlite3.Context, arg ...sqlite3.Value) {
		ctx.ResultInt64(max(arg[0].Int64(), arg[1].Int64()))
	})
}
