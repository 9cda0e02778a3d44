// The bond between servers and a test.

package redisproc

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Start launches a server that lives as long as the test. Where no redis-server
// is installed it skips the test; with "redis" in the comma-separated list of
// the environment variable REDLOCK_REQUIRE it fails the test instead.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return StartN(t, 1, opts...)[0]
}

// StartN is Start for n servers, launched in parallel.
func StartN(t testing.TB, n int, opts ...Option) []*Server {
	t.Helper()
	servers, errs := make([]*Server, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { servers[i], errs[i] = Launch(t.Context(), opts...) })
	}
	wg.Wait()
	for _, s := range servers {
		if s != nil {
			bind(t, s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		failOrSkip(t, err)
	}
	return servers
}

// Need ends a test that cannot be run without redis-server as Start does.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		failOrSkip(t, err)
	}
}

func failOrSkip(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, exec.ErrNotFound) && !required() {
		t.Skipf("NOT TESTED: no redis-server is installed (REDLOCK_REQUIRE=redis makes this a failure): %v", err)
	}
	t.Fatal(err)
}

// bind lets t close s at its end, and hear of failures before that.
func bind(t testing.TB, s *Server) {
	t.Helper()
	s.report = func(err error) { t.Error(err) }
	t.Cleanup(func() {
		s.mu.Lock()
		if p := s.proc; p != nil && t.Failed() {
			select {
			case <-p.ended:
				t.Logf("the redis-server on %s ended by itself (%s); its log ends:\n%s", s.Addr(), p.state, s.logTail())
			default:
			}
		}
		s.mu.Unlock()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func required() bool {
	return slices.ContainsFunc(strings.Split(os.Getenv("REDLOCK_REQUIRE"), ","),
		func(s string) bool { return strings.TrimSpace(s) == "redis" })
}
