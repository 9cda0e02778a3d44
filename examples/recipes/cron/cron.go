// A job that many hosts start at the same time of day, and one of them runs.

package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock"
)

// patience is how long a host tries: of five that come at once, none may have a quorum
// at first. One that comes so long before the lock expires gets it then and runs the job
// again, so the TTL has to be longer than the clocks of hosts differ, and this besides.
const patience = 500 * time.Millisecond

// A schedule is what all hosts agree on. Its mutex has a TTL of what is to pass
// between two runs at least, and no renewal.
//
// The lock is not released when the job is done, since a host whose clock is slow
// comes when a short job is long over. It stays for its TTL instead, whatever
// becomes of this process. So nobody may call Close on the mutex' client, which
// would release it: let the client have no other use.
type schedule struct {
	mutex *redlock.Mutex // WithTTL(keep), WithoutRenewal()
}

// run runs job unless another host does, or did less than the TTL ago. Job has to
// end with its context, which ends when the lock does: then another host may begin.
func (s schedule) run(ctx context.Context, job func(ctx context.Context, token int64) error) (ran bool, err error) {
	trying, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := s.mutex.Lock(trying)
	if errors.Is(err, redlock.ErrTaken) {
		return false, nil // somebody else's turn
	}
	if err != nil {
		return false, err // nobody knows whether it runs: too few nodes have answered
	}
	return true, job(lease.Context(), lease.FencingToken()) //nolint:contextcheck // the lease outlives ctx
}
