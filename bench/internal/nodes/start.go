// Nodes that a run starts for itself.

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"

	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"
)

// Servers starts n redis-server processes on this machine.
func Servers(ctx context.Context, n int) (*Set, error) {
	servers, errs := make([]*redisproc.Server, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { servers[i], errs[i] = redisproc.Launch(ctx) })
	}
	wg.Wait()
	stop := func() error {
		var err error
		for _, s := range servers {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
		}
		return err
	}
	if err := errors.Join(errs...); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			err = errors.New("no redis-server is installed; -start embedded needs none")
		}
		return nil, errors.Join(err, stop())
	}
	options := make([]*redis.Options, n)
	for i, s := range servers {
		options[i] = &redis.Options{Addr: s.Addr()}
	}
	s := newSet("server", options, stop)
	s.servers = servers
	return s, nil
}

// Containers starts n containers of an image of Redis or Valkey with Docker.
func Containers(ctx context.Context, n int, image string) (*Set, error) {
	var ids []string
	stop := func() error {
		if len(ids) == 0 {
			return nil
		}
		// ctx may have ended, and they must go all the same.
		_, err := docker(context.WithoutCancel(ctx), append([]string{"rm", "-f"}, ids...)...)
		return err
	}
	var options []*redis.Options
	for range n {
		id, err := docker(ctx, "run", "-d", "--rm", "-p", "127.0.0.1::6379", image, "--save", "", "--protected-mode", "no")
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		ids = append(ids, id)
		addr, err := docker(ctx, "port", id, "6379/tcp")
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		options = append(options, &redis.Options{Addr: addr})
	}
	s := newSet("container", options, stop)
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// await waits until all nodes answer.
func (s *Set) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*patience)
	defer cancel()
	for {
		down, _ := s.Ping(ctx)
		if len(down) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the nodes are not ready: %s", down[0])
		}
	}
}
