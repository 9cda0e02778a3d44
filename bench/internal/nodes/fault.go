// Nodes in trouble, and none after it.

package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

var errNotOurs = errors.New("only nodes that are processes of this run can be stopped")

// errBroken is the state of a node that was stopped on purpose: it is asked nothing.
var errBroken = errors.New("stopped on purpose")

// Silence stops a node: it accepts connections, and answers nothing.
func (s *Set) Silence(i int) (back func(context.Context) error, err error) {
	return s.disturb(i, (*redisproc.Server).Pause, (*redisproc.Server).Resume)
}

// Kill ends a node: connections to it are refused.
func (s *Set) Kill(i int) (back func(context.Context) error, err error) {
	return s.disturb(i, (*redisproc.Server).Kill, (*redisproc.Server).Restart)
}

func (s *Set) disturb(i int, how, back func(*redisproc.Server) error) (func(context.Context) error, error) {
	if s.servers == nil {
		return nil, errNotOurs
	}
	s.down[i] = errBroken
	return func(ctx context.Context) error { return errors.Join(back(s.servers[i]), s.answers(ctx, i)) }, how(s.servers[i])
}

// answers waits until a node does.
func (s *Set) answers(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*patience)
	defer cancel()
	for {
		s.down[i] = s.admins[i].Ping(ctx).Err()
		switch {
		case s.down[i] == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("node %d (%s) did not come back: %w", i+1, s.Options[i].Addr, s.down[i])
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Flush deletes all keys of nodes that are processes of this run.
func (s *Set) Flush(ctx context.Context) error {
	if s.servers == nil {
		return nil
	}
	return s.each(ctx, func(ctx context.Context, i int) error { return s.admins[i].FlushAllAsync(ctx).Err() })
}

// Connections is how many connections there are to all nodes that tell, besides those
// of this set.
func (s *Set) Connections(ctx context.Context) int64 {
	if s.commands != nil { // embedded nodes do not tell
		return 0
	}
	counts := make([]int64, len(s.admins))
	_ = s.each(ctx, func(ctx context.Context, i int) error {
		if s.down[i] != nil {
			return nil
		}
		clients, err := s.admins[i].Info(ctx, "clients").Result()
		counts[i] = max(number(clients, "connected_clients")-1, 0)
		return err
	}) // who does not tell counts nothing
	var sum int64
	for _, n := range counts {
		sum += n
	}
	return sum
}
