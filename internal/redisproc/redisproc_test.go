// Servers through the public API: they start, obey, and leave nothing behind.

package redisproc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

func TestStart(t *testing.T) {
	var addr, dir string
	t.Run("life", func(t *testing.T) {
		s := redisproc.Start(t)
		addr, dir = s.Addr(), s.Dir()
		want(t, s, "PONG", "PING")
		want(t, s, "", "CONFIG", "GET", "no-such-setting")
		if got := want(t, s, "", "INFO", "server"); s.PID() == 0 || !strings.Contains(got, "redis_version") {
			t.Errorf("PID() = %d, INFO = %q", s.PID(), got)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
		if host, _, _ := net.SplitHostPort(addr); host != "127.0.0.1" {
			t.Errorf("Addr() = %s, want one on 127.0.0.1", addr)
		}
	})
	if addr == "" {
		t.SkipNow() // as the subtest
	}
	refused(t, addr)
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the test, Stat(%s) = %v", filepath.Dir(dir), err)
	}
}

func TestStartN(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range redisproc.StartN(t, 5) {
		want(t, s, "OK", "SET", "me", s.Addr())
		for _, id := range []string{s.Addr(), s.Dir()} {
			if seen[id] {
				t.Errorf("%s belongs to two servers", id)
			}
			seen[id] = true
		}
		if got := want(t, s, "", "GET", "me"); got != s.Addr() {
			t.Errorf("server %s answers for %s", s.Addr(), got)
		}
	}
}

// TestFile: a configuration file is read, at each start, and arguments override it.
func TestFile(t *testing.T) {
	s := redisproc.Start(t, redisproc.File("maxmemory 5mb\nmaxclients 77\n"), redisproc.Args("--maxclients", "78"))
	for range 2 {
		want(t, s, "maxmemory\n5242880", "CONFIG", "GET", "maxmemory")
		want(t, s, "maxclients\n78", "CONFIG", "GET", "maxclients")
		s.RestartEmpty()
	}
}

func TestDo(t *testing.T) {
	s := redisproc.Start(t)
	want(t, s, "(nil)", "GET", "k")
	want(t, s, "OK", "SET", "k", "line\r\nline")
	want(t, s, "line\r\nline", "GET", "k")
	want(t, s, "7", "INCRBY", "n", "7")
	want(t, s, "line\r\nline\n(nil)\n7", "MGET", "k", "none", "n")
	want(t, s, "a\n1\nb", "EVAL", "return {'a',{1,'b'}}", "0")
	if _, err := s.Do("LPUSH", "k", "x"); !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("LPUSH on a string: %v", err)
	} else if _, ok := errors.AsType[redisproc.Error](err); !ok {
		t.Errorf("LPUSH on a string: error is a %T", err)
	}
	if _, err := s.Do(); err == nil {
		t.Error("Do() = nil, want an error")
	}
	if got := strings.Join(s.Keys(), " "); got != "k n" {
		t.Errorf("Keys() = %s", got)
	}
}

func TestKill(t *testing.T) {
	s := redisproc.Start(t, redisproc.Persist(redisproc.AOFAlways))
	addr, pid := s.Addr(), s.PID()
	want(t, s, "OK", "SET", "k", "v")
	for range 2 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		refused(t, addr)
		if got := s.PID(); got != 0 {
			t.Errorf("PID() of a killed server = %d", got)
		}
	}
	if _, err := s.Do("PING"); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	want(t, s, "v", "GET", "k")
	if s.Addr() != addr || s.PID() == pid {
		t.Errorf("restarted: Addr() = %s, was %s; PID() = %d, was %d", s.Addr(), addr, s.PID(), pid)
	}
}

func TestPause(t *testing.T) {
	s := redisproc.Start(t)
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 64)
	for range 20 {
		s.Pause()
		if _, err := c.Write([]byte("INCR n\r\n")); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if n, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a paused server answers %q, %v", b[:n], err)
		}
		s.Resume()
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	want(t, s, "20", "GET", "n")

	s.Pause()
	s.Restart() // must wake it, or it never ends
	want(t, s, "PONG", "PING")
	s.Pause()
	s.Kill()
	refused(t, s.Addr())
}

func TestOptions(t *testing.T) {
	s := redisproc.Start(t, redisproc.Args("--maxmemory", "5mb"), redisproc.Args("--databases", "3"))
	want(t, s, "maxmemory\n5242880", "CONFIG", "GET", "maxmemory")
	want(t, s, "databases\n3", "CONFIG", "GET", "databases")
}

func TestPassword(t *testing.T) {
	s := redisproc.Start(t, redisproc.Args("--requirepass", "secret"))
	if _, err := s.Do("PING"); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("PING without the password: %v", err)
	}
}

func TestClose(t *testing.T) {
	redisproc.Start(t) // skips where there is no server
	s, err := redisproc.Launch(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, s.Addr())
	for name, op := range map[string]func() error{
		"Kill": s.Kill, "Pause": s.Pause, "Resume": s.Resume, "Restart": s.Restart, "RestartEmpty": s.RestartEmpty,
	} {
		if err := op(); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s of a closed server: %v", name, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Keys of a closed server without a test returned, want a panic")
		}
	}()
	s.Keys()
}

func TestLaunchFails(t *testing.T) {
	redisproc.Start(t) // skips where there is no server
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	_, err := redisproc.Launch(t.Context(), redisproc.Args("--no-such-setting", "1"))
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("Launch with a bad argument: %v, want what the server printed", err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("a failed launch leaves %v, %v", left, err)
	}
}

// want runs a command and checks its reply, if want is not empty.
func want(t *testing.T, s *redisproc.Server, want string, args ...string) string {
	t.Helper()
	got, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if want != "" && got != want {
		t.Errorf("%q = %q, want %q", args, got, want)
	}
	return got
}

func refused(t *testing.T, addr string) {
	t.Helper()
	if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		c.Close()
		t.Errorf("%s still accepts connections", addr)
	}
}
