// Locks in PostgreSQL, for whose data is there anyway.

package peer

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/redlock/bench/internal/alt"
)

func postgresAdvisory() Peer {
	return postgresPeer("postgres-advisory", "pg_advisory_lock on one PostgreSQL over a Unix socket, one connection per caller: no quorum, no expiry",
		func(c *pgx.Conn, name string) (Locker, error) {
			h := fnv.New64a()
			_, _ = h.Write([]byte(name)) // cannot fail
			return &advisoryLocker{c, int64(h.Sum64())}, nil
		})
}

func postgresRow() Peer {
	return postgresPeer("postgres-row", "BEGIN, SELECT FOR UPDATE, COMMIT on one PostgreSQL with fsync, over a Unix socket: no quorum, no expiry",
		func(c *pgx.Conn, name string) (Locker, error) {
			ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
			defer cancel()
			_, err := c.Exec(ctx, "INSERT INTO bench_lock VALUES ($1) ON CONFLICT DO NOTHING", name)
			return &rowLocker{conn: c, name: name}, err
		})
}

func postgresPeer(name, about string, locker func(*pgx.Conn, string) (Locker, error)) Peer {
	return Peer{
		Name: name, About: about, Waits: true,
		Serve: func(ctx context.Context) (Server, error) { return alt.Postgres(ctx) },
		Open: func(ctx context.Context, env Env) (Session, error) {
			s := &postgresSession{dsn: env.Endpoint, locker: locker}
			c, err := s.connect(ctx)
			if err != nil {
				return nil, err
			}
			// Two sessions may both find that it is not there.
			_, err = c.Exec(ctx, "SELECT pg_advisory_lock(1)")
			if err == nil {
				_, err = c.Exec(ctx, "CREATE TABLE IF NOT EXISTS bench_lock (name text PRIMARY KEY)")
			}
			if err == nil {
				_, err = c.Exec(ctx, "SELECT pg_advisory_unlock(1)")
			}
			return s, err
		},
	}
}

type postgresSession struct {
	dsn    string
	locker func(*pgx.Conn, string) (Locker, error)

	mu    sync.Mutex
	conns []*pgx.Conn
}

func (s *postgresSession) connect(ctx context.Context) (*pgx.Conn, error) {
	c, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	return c, nil
}

func (s *postgresSession) Locker(name string) (Locker, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return s.locker(c, name)
}

func (s *postgresSession) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	var err error
	for _, c := range s.conns {
		err = errors.Join(err, c.Close(ctx))
	}
	return err
}

type advisoryLocker struct {
	conn *pgx.Conn
	key  int64
}

func (l *advisoryLocker) Lock(ctx context.Context) error {
	_, err := l.conn.Exec(ctx, "SELECT pg_advisory_lock($1)", l.key)
	return err
}

func (l *advisoryLocker) Extend(context.Context) error { return errNoExtend }

func (l *advisoryLocker) Unlock(ctx context.Context) error {
	var ok bool
	err := l.conn.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", l.key).Scan(&ok)
	if err == nil && !ok {
		err = errors.New("the lock was not held")
	}
	return err
}

type rowLocker struct {
	conn *pgx.Conn
	name string
	tx   pgx.Tx
}

func (l *rowLocker) Lock(ctx context.Context) (err error) {
	if l.tx, err = l.conn.Begin(ctx); err != nil {
		return err
	}
	var name string
	err = l.tx.QueryRow(ctx, "SELECT name FROM bench_lock WHERE name = $1 FOR UPDATE", l.name).Scan(&name)
	if err != nil {
		return errors.Join(err, l.tx.Rollback(context.WithoutCancel(ctx)))
	}
	return nil
}

func (l *rowLocker) Extend(context.Context) error { return errNoExtend }

func (l *rowLocker) Unlock(ctx context.Context) error { return l.tx.Commit(ctx) }
