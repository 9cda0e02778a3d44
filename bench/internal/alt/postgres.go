// PostgreSQL.

package alt

import (
	"context"

	_ "github.com/jackc/pgx/v5/stdlib" // by which dbproc asks whether the server is up
	"github.com/quorumlock/redlock/internal/dbproc"
)

type postgres struct{ *dbproc.Server }

func (p postgres) Endpoint() string { return p.DSN("postgres") }

// Postgres starts one server, which syncs its log to the disk as in production.
func Postgres(ctx context.Context) (Server, error) {
	s, err := dbproc.LaunchPostgres(ctx, "-c", "fsync=on")
	if err != nil {
		return nil, err
	}
	return postgres{s}, nil
}

// A Server is what the functions of this package start.
type Server interface {
	Endpoint() string
	Close() error
}
