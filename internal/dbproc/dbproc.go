// Package dbproc starts real database servers for tests.
//
// Each server has a directory of its own and listens on a Unix socket in it, and
// nowhere else. It dies with its test; on Linux, also with the program that
// started it, however that ends. No service of the system is touched.
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
	driver string
	dsn    func(database string) string
	dir    string
	proc   *process
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
	bin, err := k.find()
	if err != nil {
		if required(k.name) {
			t.Fatalf("%s is required, but not installed: %v", k.name, err)
		}
		t.Skipf("NOT TESTED: %s is not installed (REDLOCK_REQUIRE=%[1]s makes this a failure): %v", k.name, err)
	}
	dir, err := os.MkdirTemp("", "dbproc-") //nolint:usetesting // a socket's path may not be longer than about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := giveAway(dir); err != nil {
		t.Fatal(err)
	}

	setup, err := run(k.setup(bin, dir), dir, "setup.log")
	if err != nil {
		t.Fatal(err)
	}
	if err := setup.wait(setupTimeout); err != nil || !setup.succeeded() {
		t.Fatalf("%s: making the system tables failed (%v, %v):\n%s", k.name, setup.state, err, tail(dir, "setup.log"))
	}

	proc, err := run(k.serve(bin, dir), dir, "server.log")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{driver: k.driver, dsn: func(database string) string { return k.dsn(dir, database) }, dir: dir, proc: proc}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s ends:\n%s", k.name, tail(dir, "server.log"))
		}
		failed := t.Failed() // perhaps because the server was not ready, or is gone
		if err := proc.stop(k.stop); err != nil {
			t.Errorf("%s: %v", k.name, err)
		} else if !failed && !proc.succeeded() {
			t.Errorf("%s ended badly: %v", k.name, proc.state)
		}
	})
	if err := s.ready(t.Context(), k.first); err != nil {
		t.Fatalf("%s: not ready: %v; its log ends:\n%s", k.name, err, tail(dir, "server.log"))
	}
	return s
}

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	db, err := sql.Open(s.driver, s.dsn(database))
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
