// The end of a run: nothing is left on the nodes, and no server.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// close removes all keys and ends what was started.
func (r *runner) close(ctx context.Context) error {
	var err error
	for _, n := range r.networks {
		if n != nil {
			err = errors.Join(err, n.Close())
		}
	}
	for _, s := range r.servers {
		err = errors.Join(err, s.Close())
	}
	if r.set == nil {
		return err
	}
	if len(r.conf.redis) > 0 {
		// The run may have been interrupted, and the keys go all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if e := r.set.Delete(ctx, r.keys()); e != nil {
			err = errors.Join(err, fmt.Errorf("keys with %q in their names are left, and expire: %w", r.id, e))
		}
	}
	return errors.Join(err, r.set.Close())
}

// keys are all that peers may have left on the nodes, the counters of fencing
// tokens among them. A name holds its hash tag in braces, by which redlock names
// what belongs to a lock.
func (r *runner) keys() []string {
	var all []string
	for name := range r.lockNames {
		lock := "lock:" + name
		all = append(all, name, lock, "redlock:fence:{"+r.id+"}"+lock, "redlock:queue:{"+r.id+"}"+lock)
	}
	return all
}
