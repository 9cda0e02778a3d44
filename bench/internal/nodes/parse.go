// Package nodes provides the Redis nodes of a run: those of the user, or its own.
package nodes

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Parse turns redis:// URLs and host:port pairs into options. It reports every
// fault, without passwords, and does no I/O.
func Parse(list []string) ([]*redis.Options, error) {
	var all []*redis.Options
	var faults []error
	for i, text := range list {
		opts, err := parse(strings.TrimSpace(text))
		switch {
		case err != nil:
			err = fmt.Errorf("node %d %w", i+1, err)
		case slices.ContainsFunc(all, func(o *redis.Options) bool { return o.Addr == opts.Addr }):
			err = fmt.Errorf("node %d %q: is there twice; a server has one vote", i+1, opts.Addr)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, opts)
	}
	return all, errors.Join(faults...)
}

func parse(text string) (*redis.Options, error) {
	opts, shown := &redis.Options{Addr: text}, text
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return nil, errors.New("is not a URL") // what the parser says quotes the password
		}
		shown = u.Redacted()
		if opts, err = redis.ParseURL(text); err != nil {
			return nil, fmt.Errorf("%q: %w", shown, err)
		}
	}
	if opts.Network == "unix" {
		return opts, nil
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

// Redact returns a list of nodes as it may be shown.
func Redact(list []string) []string {
	shown := make([]string, len(list))
	for i, text := range list {
		shown[i] = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			continue
		}
		u, err := url.Parse(shown[i])
		if err != nil {
			shown[i] = "(not a URL)"
			continue
		}
		shown[i] = u.Redacted()
	}
	return shown
}
