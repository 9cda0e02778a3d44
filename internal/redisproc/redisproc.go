// Package redisproc starts and stops real redis-server processes.
//
// Tests use [Start] or [StartN]: a server dies with its test. Programs such as
// a benchmark use [Launch] and [Server.Close]. Every server has a port and a
// directory of its own and listens on 127.0.0.1 only. On Linux it also dies
// with the program that started it, however that ends.
package redisproc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// A Server is one redis-server, running or not. Its methods are safe for
// concurrent use. Of a server made by [Start], a failing Kill, Pause, Resume,
// Restart or RestartEmpty has also failed the test, which may thus ignore the
// error.
type Server struct {
	conf   config
	port   int
	base   string      // temporary directory: the server's log, and its own directory
	report func(error) // fails the test, if there is one

	mu     sync.Mutex
	proc   *process // nil if the server was stopped
	paused bool
	closed bool
}

type config struct {
	binary string
	args   []string
	env    []string
	file   string     // text of the configuration file, empty for none
	ports  func() int // a port that is free, or was a moment ago
}

// An Option configures a server.
type Option func(*config)

// Args appends command line arguments, such as "--maxmemory", "1mb". They go
// last, so they override what the package itself passes.
func Args(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// Env adds KEY=value pairs to the server's environment.
func Env(env ...string) Option {
	return func(c *config) { c.env = append(c.env, env...) }
}

// File gives the server a configuration file with this text, which it may rewrite.
// What the package passes, and Args, override it. A Sentinel needs one.
func File(text string) Option {
	return func(c *config) { c.file = text }
}

// Persistence is what a server writes to disk.
type Persistence int

const (
	// None keeps nothing over a restart. It is the default.
	None Persistence = iota

	// RDB writes a snapshot at a clean stop and on SAVE; a killed server falls
	// back to its last one.
	RDB

	// AOFEverySec appends writes to a file and syncs it once per second. A server
	// answers before it has written while a sync is under way, so that also a
	// killed process, and not only a machine without power, may lose the writes
	// of the last two seconds.
	AOFEverySec

	// AOFAlways syncs the file before every answer.
	AOFAlways
)

// Persist sets what the server keeps over a restart.
func Persist(mode Persistence) Option {
	switch mode {
	case None:
		return Args("--save", "", "--appendonly", "no")
	case RDB:
		return Args("--save", "3600 1", "--appendonly", "no")
	case AOFEverySec:
		return Args("--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
	case AOFAlways:
		return Args("--save", "", "--appendonly", "yes", "--appendfsync", "always")
	}
	panic(fmt.Sprintf("redisproc: unknown persistence %d", mode))
}

// portTries bounds how often Launch looks for another port.
const portTries = 20

// Launch starts a server and waits until it answers. ctx bounds the launch
// only, not the life of the server, which the caller must Close. If there is no
// redis-server to run, the error is [exec.ErrNotFound].
func Launch(ctx context.Context, opts ...Option) (*Server, error) {
	conf := config{ports: freePort}
	for _, opt := range append([]Option{Persist(None)}, opts...) {
		opt(&conf)
	}
	return launch(ctx, conf)
}

func launch(ctx context.Context, conf config) (*Server, error) {
	var err error
	if conf.binary, err = exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("redisproc: %w", err)
	}
	s := &Server{conf: conf}
	if s.base, err = os.MkdirTemp("", "redisproc-"); err != nil {
		return nil, fmt.Errorf("redisproc: %w", err)
	}
	if err = os.Mkdir(s.Dir(), 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("redisproc: %w", err), s.Close())
	}
	if conf.file != "" {
		if err = os.WriteFile(s.confFile(), []byte(conf.file), 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("redisproc: %w", err), s.Close())
		}
	}
	for range portTries {
		s.port = conf.ports()
		if err = s.start(ctx); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Ports of servers lie below the ports that systems hand out for outgoing
// connections, and so do those of the Cluster bus, which are higher by 10,000.
// Otherwise a client could be given the port of a server that is down for a
// moment, and could even connect to itself there.
const (
	firstPort = 12000
	ports     = 10000
)

func freePort() int {
	for {
		port := firstPort + rand.IntN(ports)
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port
		}
	}
}

const host = "127.0.0.1"

// Addr returns the server's address. It stays the same over restarts.
func (s *Server) Addr() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }

// Dir returns the server's working directory, which holds its data.
func (s *Server) Dir() string { return filepath.Join(s.base, "data") }

func (s *Server) confFile() string { return filepath.Join(s.base, "redis.conf") }

func (s *Server) logFile() string { return filepath.Join(s.base, "redis.log") }

// PID returns the process ID, or zero if the server was stopped.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.Pid
}

// Close kills the server and removes its files. It may be called twice.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return errors.Join(s.kill(), os.RemoveAll(s.base))
}
