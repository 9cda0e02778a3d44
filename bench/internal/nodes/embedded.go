// Nodes inside this process, for a first look where no Redis is installed.

package nodes

import (
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Embedded starts n in-memory servers. They share the processors and the memory
// statistics of the callers, so only comparisons mean something.
func Embedded(n int) (*Set, error) {
	var servers []*miniredis.Miniredis
	done := make(chan struct{})
	stop := func() error {
		close(done)
		for _, s := range servers {
			s.Close()
		}
		return nil
	}
	options := make([]*redis.Options, n)
	for i := range n {
		s := miniredis.NewMiniRedis()
		if err := s.StartAddr("127.0.0.1:0"); err != nil {
			return nil, errors.Join(fmt.Errorf("start an embedded node: %w", err), stop())
		}
		servers = append(servers, s)
		options[i] = &redis.Options{Addr: s.Addr()}
	}
	go drive(servers, done)
	s := newSet("embedded", options, stop)
	s.commands = func(i int) int64 { return int64(servers[i].CommandCount()) }
	return s, nil
}

// drive moves the time of the servers, which does not move by itself. Each step
// visits every key, hence not more often.
func drive(servers []*miniredis.Miniredis, done <-chan struct{}) {
	const step = 20 * time.Millisecond
	ticks := time.NewTicker(step)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
			for _, s := range servers {
				s.FastForward(step)
			}
		}
	}
}
