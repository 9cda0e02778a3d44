// The nodes of a run, whoever started them.

package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// A Set is the nodes of a run.
type Set struct {
	Kind    string // "embedded", "server", "container" or "own"
	Options []*redis.Options

	admins   []*redis.Client // to look at the nodes, not to lock
	versions []string
	down     []error             // by node; nil for one that answers
	commands func(i int) int64   // that an embedded node has executed; nil for others
	stop     func() error        // ends what was started
	servers  []*redisproc.Server // if the nodes are processes of this run
}

// Own is the nodes of the user. It does no I/O.
func Own(options []*redis.Options) *Set {
	return newSet("own", options, func() error { return nil })
}

func newSet(kind string, options []*redis.Options, stop func() error) *Set {
	s := &Set{Kind: kind, Options: options, stop: stop, versions: make([]string, len(options)), down: make([]error, len(options))}
	for _, o := range options {
		opts := *o
		opts.MaxRetries = -1 // one answer is asked for, not the best of four
		opts.ContextTimeoutEnabled = true
		opts.PoolSize = 1
		s.admins = append(s.admins, redis.NewClient(&opts))
	}
	return s
}

// patience is how long a node may take to answer what is not a lock.
const patience = 3 * time.Second

// Ping asks every node once. It returns a line for each that does not answer, and
// an error if those that do are no quorum.
func (s *Set) Ping(ctx context.Context) (down []string, err error) {
	s.each(ctx, func(ctx context.Context, i int) error {
		s.down[i] = s.admins[i].Ping(ctx).Err()
		if s.down[i] == nil {
			info, _ := s.admins[i].Info(ctx, "server").Result() // it may be forbidden
			s.versions[i] = field(info, "redis_version")
		}
		return nil
	})
	for i, err := range s.down {
		if err != nil {
			down = append(down, fmt.Sprintf("node %d (%s) does not answer: %v", i+1, s.Options[i].Addr, err))
		}
	}
	if up, quorum := len(s.down)-len(down), len(s.down)/2+1; up < quorum {
		err = fmt.Errorf("%d of %d nodes answer, a quorum is %d:\n  %s", up, len(s.down), quorum, strings.Join(down, "\n  "))
	}
	return down, err
}

// each calls f for all nodes at once, and joins what it returns.
func (s *Set) each(ctx context.Context, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	errs := make([]error, len(s.admins))
	var wg sync.WaitGroup
	for i := range s.admins {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				errs[i] = fmt.Errorf("node %d (%s): %w", i+1, s.Options[i].Addr, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Version and Dead tell what Ping has found.
func (s *Set) Version(i int) string { return s.versions[i] }

// Dead reports whether a node did not answer.
func (s *Set) Dead(i int) bool { return s.down[i] != nil }

// Delete deletes keys from all nodes that were up.
func (s *Set) Delete(ctx context.Context, keys []string) error {
	const most = 1000 // per command, so that no other client waits long
	return s.each(ctx, func(ctx context.Context, i int) error {
		if s.down[i] != nil {
			return nil
		}
		for start := 0; start < len(keys); start += most {
			if err := s.admins[i].Del(ctx, keys[start:min(start+most, len(keys))]...).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close ends what was started.
func (s *Set) Close() error {
	var err error
	for _, c := range s.admins {
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, s.stop())
}

// field returns a value from what INFO answered.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
