// What survives a restart and a crash, for each kind of persistence.

package redisproc_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

func TestRestart(t *testing.T) {
	const snapshot, all = "1", "2"
	for name, test := range map[string]struct {
		mode         redisproc.Persistence
		clean, crash string // what a clean restart, and a crash, leave of "n"
	}{
		"none":        {redisproc.None, "(nil)", "(nil)"},
		"rdb":         {redisproc.RDB, all, snapshot},
		"aofeverysec": {redisproc.AOFEverySec, all, all},
		"aofalways":   {redisproc.AOFAlways, all, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redisproc.Start(t, redisproc.Persist(test.mode))
			fill := func() {
				want(t, s, "OK", "SET", "n", "1")
				if test.mode == redisproc.RDB {
					want(t, s, "OK", "SAVE")
				}
				want(t, s, "2", "INCR", "n")
				if test.mode == redisproc.AOFEverySec {
					awaitAOF(t, s)
				}
			}
			fill()
			s.Restart()
			want(t, s, test.clean, "GET", "n")

			fill()
			s.Kill()
			s.Restart()
			want(t, s, test.crash, "GET", "n")

			fill()
			s.RestartEmpty()
			if keys := s.Keys(); len(keys) > 0 {
				t.Errorf("after RestartEmpty there are keys %q", keys)
			}
			fill()
			s.Kill()
			s.RestartEmpty()
			if keys := s.Keys(); len(keys) > 0 {
				t.Errorf("after Kill and RestartEmpty there are keys %q", keys)
			}
		})
	}
}

// awaitAOF waits until what was answered has been written to the file.
func awaitAOF(t *testing.T, s *redisproc.Server) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if strings.Contains(want(t, s, "", "INFO", "persistence"), "aof_buffer_length:0\r\n") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the append-only file is not written")
		}
	}
}
