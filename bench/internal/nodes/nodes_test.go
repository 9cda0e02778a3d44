// Nodes: what they are called, whether they answer, and how far away they are.

package nodes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/internal/nodes"
)

func TestParse(t *testing.T) {
	got, err := nodes.Parse([]string{"a:1", " redis://u:p@b:2/3", "unix:///run/redis.sock"})
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	if got[0].Addr != "a:1" || got[1].Addr != "b:2" || got[1].Password != "p" || got[1].DB != 3 || got[2].Network != "unix" {
		t.Errorf("%+v, %+v, %+v", got[0], got[1], got[2])
	}
	_, err = nodes.Parse([]string{"a", "redis://:secret@b:0", "redis://:secret%@b:1"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "secret") {
		t.Errorf("want three faults without a password: %v", err)
	}
	shown := nodes.Redact([]string{"redis://u:secret@b:1", "a:1", "redis://:secret%@b:1"})
	if want := []string{"redis://u:xxxxx@b:1", "a:1", "(not a URL)"}; !slices.Equal(shown, want) {
		t.Errorf("shown as %q, want %q", shown, want)
	}
}

func embedded(t *testing.T, n int) *nodes.Set {
	t.Helper()
	s, err := nodes.Embedded(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestTrouble stops nodes, which are then asked nothing, and heals them.
func TestTrouble(t *testing.T) {
	redisproc.Need(t)
	s, err := nodes.Servers(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for name, stop := range map[string]func(int) (func(context.Context) error, error){"silent": s.Silence, "dead": s.Kill} {
		heal, err := stop(1)
		if err != nil {
			t.Fatal(err)
		}
		if now := s.Read(t.Context()); now[0] == nil || now[1] != nil {
			t.Errorf("%s: both nodes tell, or none does: %v", name, now)
		}
		if err := heal(t.Context()); err != nil || s.Dead(1) {
			t.Errorf("%s: not healed: %v", name, err)
		}
		if down, _ := s.Ping(t.Context()); len(down) > 0 {
			t.Errorf("%s: %q after it was healed", name, down)
		}
	}
	c := redis.NewClient(s.Options[0])
	defer c.Close()
	if err := c.Set(t.Context(), "key", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := s.Connections(t.Context()); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if err := s.Flush(t.Context()); err != nil || c.DBSize(t.Context()).Val() != 0 {
		t.Errorf("there are keys left: %v", err)
	}
	if _, err := embedded(t, 1).Silence(0); err == nil {
		t.Error("an embedded node was stopped")
	}
}

func TestPing(t *testing.T) {
	up := embedded(t, 2)
	if down, err := up.Ping(t.Context()); len(down) > 0 || err != nil {
		t.Errorf("of nodes that are up: %q, %v", down, err)
	}
	mixed := nodes.Own(append(slices.Clone(up.Options), &redis.Options{Addr: "127.0.0.1:1"}))
	defer mixed.Close()
	down, err := mixed.Ping(t.Context())
	if len(down) != 1 || !strings.Contains(down[0], "node 3 (127.0.0.1:1)") || err != nil || !mixed.Dead(2) || mixed.Dead(0) {
		t.Errorf("with one down: %q, %v", down, err)
	}
	if err := mixed.Delete(t.Context(), []string{"a"}); err != nil {
		t.Errorf("a node that is down has no keys to delete: %v", err)
	}
}

// TestTimeMoves wants keys of embedded nodes to expire.
func TestTimeMoves(t *testing.T) {
	s := embedded(t, 1)
	c := redis.NewClient(s.Options[0])
	defer c.Close()
	if err := c.Set(t.Context(), "key", "value", 100*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); c.Exists(t.Context(), "key").Val() == 1; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the key is still there")
		}
	}
}

func TestBehind(t *testing.T) {
	s := embedded(t, 2)
	const far = 30 * time.Millisecond
	n, err := s.Behind([]time.Duration{0, far})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if n.Options[0].Addr != s.Options[0].Addr || n.Options[1].Addr == s.Options[1].Addr {
		t.Errorf("a proxy for the near node, or none for the far: %q, %q", n.Options[0].Addr, n.Options[1].Addr)
	}
	c := redis.NewClient(n.Options[1])
	defer c.Close()
	for range 2 { // the first connects, too
		start := time.Now()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < far {
			t.Errorf("a round trip of %v to a node that is %v away", took, far)
		}
	}
}

func TestCounters(t *testing.T) {
	ask := func(t *testing.T, s *nodes.Set) nodes.Counters {
		t.Helper()
		c := redis.NewClient(s.Options[0])
		defer c.Close()
		before := s.Read(t.Context())
		for range 100 {
			c.Ping(t.Context())
		}
		return s.Read(t.Context()).Since(before)
	}
	t.Run("embedded", func(t *testing.T) {
		if got := ask(t, embedded(t, 1)); got.Commands < 100 {
			t.Errorf("%+v after 100 commands", got)
		}
	})
	t.Run("servers", func(t *testing.T) {
		redisproc.Need(t)
		s, err := nodes.Servers(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := ask(t, s); got.Commands < 100 || got.BytesIn < 1000 || got.BytesOut < 100 {
			t.Errorf("%+v after 100 commands", got)
		}
	})
}

// TestSince leaves out a node of which one reading is missing, or that began anew.
func TestSince(t *testing.T) {
	earlier := nodes.Reading{{Commands: 10}, {Commands: 10}, nil, {Commands: 10}}
	later := nodes.Reading{{Commands: 15}, nil, {Commands: 7}, {Commands: 3}}
	if got := later.Since(earlier); got.Commands != 5 {
		t.Errorf("%d commands, want 5", got.Commands)
	}
}

func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := nodes.Servers(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "no redis-server is installed") {
		t.Errorf("servers: %v", err)
	}
	if _, err := nodes.Containers(context.Background(), 3, "redis"); err == nil || !strings.Contains(err.Error(), "docker run") {
		t.Errorf("containers: %v", err)
	}
}
