package redisproc_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

// TestWallClock: each clock is for its own server, before and after a restart, and
// a step reaches keys that are there.
func TestWallClock(t *testing.T) {
	clocks := redisproc.WallClocks(t, 2)
	if err := clocks[0].Set(-time.Hour); err != nil {
		t.Fatal(err)
	}
	var servers []*redisproc.Server
	for _, c := range clocks {
		servers = append(servers, redisproc.Start(t, c.Serve(), redisproc.Persist(redisproc.AOFAlways)))
	}
	isOff(t, servers[0], -time.Hour)
	isOff(t, servers[1], 0)

	want(t, servers[0], "OK", "SET", "key", "value", "PX", "3600000")
	for _, off := range []time.Duration{20*time.Minute + 123456*time.Microsecond, -40*time.Minute - 123456*time.Microsecond, 0} {
		if err := clocks[0].Set(-time.Hour + off); err != nil {
			t.Fatal(err)
		}
		isOff(t, servers[0], -time.Hour+off)
		ms, err := strconv.Atoi(want(t, servers[0], "", "PTTL", "key"))
		if left := time.Duration(ms) * time.Millisecond; err != nil || (left-time.Hour+off).Abs() > 30*time.Second {
			t.Errorf("stepped by %v, the key lives for another %v, %v", off, left, err)
		}
	}
	servers[0].Restart()
	isOff(t, servers[0], -time.Hour)
	isOff(t, servers[1], 0)
}

// isOff checks a server's clock to the microsecond, but for how long it takes to ask.
func isOff(t *testing.T, s *redisproc.Server, off time.Duration) {
	t.Helper()
	before := time.Now().Truncate(time.Microsecond)
	parts := strings.Fields(want(t, s, "", "TIME"))
	after := time.Now()
	if len(parts) != 2 {
		t.Fatalf("TIME is %q", parts)
	}
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	micros, err2 := strconv.ParseInt(parts[1], 10, 64)
	at := time.Unix(seconds, micros*1000).Add(-off)
	if err1 != nil || err2 != nil || at.Before(before) || at.After(after) {
		t.Errorf("the clock is %v off, and from %v to %v too much", off, at.Sub(after), at.Sub(before))
	}
}
