// The Redis nodes as clients: addresses parsed, opened, asked whether they are up.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// parseNodes turns redis:// URLs and host:port pairs into options. Passwords
// do not get into its errors.
func parseNodes(list []string) ([]*redis.Options, error) {
	var faults []error
	all := make([]*redis.Options, 0, len(list))
	place := make(map[string]int)
	for i, text := range list {
		opts, err := parseNode(strings.TrimSpace(text))
		if err != nil {
			faults = append(faults, fmt.Errorf("node %d %w", i+1, err))
			continue
		}
		if first, ok := place[opts.Addr]; ok {
			faults = append(faults, fmt.Errorf("node %d %q: is node %d again; a server has one vote", i+1, opts.Addr, first))
			continue
		}
		place[opts.Addr] = i + 1
		all = append(all, opts)
	}
	return all, errors.Join(faults...)
}

func parseNode(text string) (*redis.Options, error) {
	opts := &redis.Options{Addr: text}
	shown := text
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return nil, errors.New("is not a URL") // the parser's own error quotes the password
		}
		shown = u.Redacted()
		if opts, err = redis.ParseURL(text); err != nil {
			return nil, fmt.Errorf("%q: %w", shown, err)
		}
		if opts.Network == "unix" {
			return opts, nil
		}
	}
	host, port, err := net.SplitHostPort(opts.Addr)
	if err != nil || host == "" {
		return nil, fmt.Errorf("%q: want a redis:// URL or host:port", shown)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("%q: port must be from 1 to 65535", shown)
	}
	return opts, nil
}

// openNodes returns one client per node. Nothing is dialled yet.
func openNodes(list []string) ([]redis.UniversalClient, error) {
	all, err := parseNodes(list)
	if err != nil {
		return nil, err
	}
	clients := make([]redis.UniversalClient, len(all))
	for i, opts := range all {
		clients[i] = redis.NewClient(opts)
	}
	return clients, nil
}

func closeNodes(clients []redis.UniversalClient) {
	for _, c := range clients {
		_ = c.Close() // the process ends or the test is over: nobody could act on it
	}
}

// pingNodes asks each node once and returns one line for each that does not
// answer. It fails when no quorum answers: the run could only wait.
func pingNodes(ctx context.Context, list []string) (down []string, err error) {
	all, err := parseNodes(list)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()

	answers := make([]error, len(all))
	var wg sync.WaitGroup
	for i, opts := range all {
		opts.MaxRetries = -1 // one answer is asked for, not the best of four
		opts.ContextTimeoutEnabled = true
		wg.Go(func() {
			c := redis.NewClient(opts)
			answers[i] = c.Ping(ctx).Err()
			_ = c.Close()
		})
	}
	wg.Wait()

	for i, err := range answers {
		if err != nil {
			down = append(down, fmt.Sprintf("node %d (%s) does not answer: %v", i+1, all[i].Addr, err))
		}
	}
	if quorum := len(all)/2 + 1; len(all)-len(down) < quorum {
		return down, fmt.Errorf("%d of %d nodes answer, a quorum is %d:\n  %s",
			len(all)-len(down), len(all), quorum, strings.Join(down, "\n  "))
	}
	return down, nil
}
