// Package dbproc starts real database servers for tests and benchmarks.
//
// Each server has a directory of its own and listens on a Unix socket in it, and
// nowhere else. It dies with its test, or when it is closed; on Linux, also with
// the program that started it, however that ends. No service of the system is
// touched.
//
// The package brings no drivers, so that the root module need not require them:
// whoever starts a server imports its driver.
package dbproc

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	setupTimeout = 2 * time.Minute // to make the system tables, on a loaded machine
	startTimeout = time.Minute
	stopTimeout  = 20 * time.Second
	pollInterval = 10 * time.Millisecond
)

// A Server is a running database server.
type Server struct {
	kind kind
	dsn  func(database string) string
	dir  string
	proc *process
}

// DSN returns the data source name of one of the server's databases.
func (s *Server) DSN(database string) string { return s.dsn(database) }

// Dir returns the server's directory, which is removed with it.
func (s *Server) Dir() string { return s.dir }

// A kind is what the database servers differ in.
type kind struct {
	name   string // in messages and in REDLOCK_REQUIRE
	driver string
	find   func() (bin map[string]string, err error)        // the programs needed, by name
	setup  func(bin map[string]string, dir string) []string // command that makes the system tables
	serve  func(bin map[string]string, dir string) []string // command that runs the server
	dsn    func(dir, database string) string
	first  string         // database that is there from the beginning
	stop   syscall.Signal // ends the server in order
}

// start runs a server that lives as long as the test.
func start(t testing.TB, k kind) *Server {
	t.Helper()
	s, err := launch(t.Context(), k)
	switch {
	case err == nil:
	case errors.Is(err, exec.ErrNotFound) && !required(k.name):
		t.Skipf("NOT TESTED: %s is not installed (REDLOCK_REQUIRE=%[1]s makes this a failure): %v", k.name, err)
	case errors.Is(err, exec.ErrNotFound):
		t.Fatalf("%s is required, but not installed: %v", k.name, err)
	default:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s ends:\n%s", k.name, tail(s.dir, "server.log"))
		}
		failed := t.Failed() // perhaps because the server is gone
		if err := s.Close(); err != nil && !failed {
			t.Error(err)
		}
	})
	return s
}

// launch runs a server until it is closed. If it is not installed, the error is
// exec.ErrNotFound.
func launch(ctx context.Context, k kind) (s *Server, err error) {
	bin, err := k.find()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	dir, err := os.MkdirTemp("", "dbproc-") // a socket's path may not be longer than about 100 bytes
	if err != nil {
		return nil, err
	}
	s = &Server{kind: k, dsn: func(database string) string { return k.dsn(dir, database) }, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", k.name, err), s.remove())
			s = nil
		}
	}()
	if err := giveAway(dir); err != nil {
		return s, err
	}
	setup, err := run(k.setup(bin, dir), dir, "setup.log")
	if err != nil {
		return s, err
	}
	if err := setup.wait(setupTimeout); err != nil {
		return s, err
	}
	if !setup.succeeded() {
		return s, fmt.Errorf("making the system tables failed (%v):\n%s", setup.state, tail(dir, "setup.log"))
	}
	if s.proc, err = run(k.serve(bin, dir), dir, "server.log"); err != nil {
		return s, err
	}
	if err := s.ready(ctx, k.first); err != nil {
		return s, fmt.Errorf("not ready: %w; its log ends:\n%s", err, tail(dir, "server.log"))
	}
	return s, nil
}

// Close stops the server in order, and removes its directory.
func (s *Server) Close() error {
	err := s.remove()
	if err == nil && !s.proc.succeeded() {
		err = fmt.Errorf("it ended badly: %v", s.proc.state)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.kind.name, err)
	}
	return nil
}

// remove ends what runs of the server, and removes its directory.
func (s *Server) remove() error {
	var err error
	if s.proc != nil {
		err = s.proc.stop(s.kind.stop)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	db, err := sql.Open(s.kind.driver, s.dsn(database))
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-s.proc.ended:
			return fmt.Errorf("it ended (%v)", s.proc.state)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pollInterval):
		}
	}
}

// find looks for programs on the PATH, and then in the folders given, the last
// one first. It wants all of them in one place, so that they fit each other.
func find(folders []string, names ...string) (map[string]string, error) {
	places := append([]string{""}, folders...) // "" is the PATH
	slices.Reverse(places[1:])
	var missing error
	for _, place := range places {
		bin := make(map[string]string)
		for _, name := range names {
			path, err := exec.LookPath(filepath.Join(place, name))
			if err != nil {
				missing = fmt.Errorf("%s: %w", name, exec.ErrNotFound)
				break
			}
			bin[name] = path
		}
		if len(bin) == len(names) {
			return bin, nil
		}
	}
	return nil, missing
}

func required(name string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv("REDLOCK_REQUIRE"), ","),
		func(s string) bool { return strings.TrimSpace(s) == name })
}

// tail returns the end of a log.
func tail(dir, file string) string {
	log, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4096):])
}
