// LogTrace: which line is written for what, and how grave it is.

package redlock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/redlock"
)

// TestLogTrace: each event is one line of its level, with constant keys, and hooks that
// the log has no use for are not there.
func TestLogTrace(t *testing.T) {
	var text bytes.Buffer
	trace := redlock.LogTrace(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	key := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	fault := errors.New("a fault")
	levels := map[string][2]string{ // of what went well, and of what did not
		"LockDone": {"DEBUG", "DEBUG"}, "AttemptStart": {"DEBUG", ""}, "AttemptDone": {"DEBUG", "DEBUG"},
		"NodeDone": {"DEBUG", "DEBUG"}, "Wait": {"", "DEBUG"}, "Called": {"DEBUG", ""}, "Deaf": {"", "WARN"},
		"Renewal": {"DEBUG", "WARN"}, "Danger": {"WARN", "WARN"}, "Lost": {"", "ERROR"}, "Unlocked": {"DEBUG", "WARN"},
		"CleanupDropped": {"", "WARN"},
	}
	for _, hook := range hooks() {
		f := reflect.ValueOf(trace).Elem().FieldByName(hook)
		if f.IsNil() != (hook == "LockStart") {
			t.Errorf("%s: nil is %v", hook, f.IsNil())
		}
		for i, level := range levels[hook] {
			if level == "" {
				continue
			}
			e := reflect.New(f.Type().In(0)).Elem()
			for name, value := range map[string]any{"Context": t.Context(), "Name": "x", "Node": "n", "Token": int64(7)} {
				if field := e.FieldByName(name); field.IsValid() {
					field.Set(reflect.ValueOf(value))
				}
			}
			if i == 1 {
				e.FieldByName("Err").Set(reflect.ValueOf(fault))
			}
			f.Call([]reflect.Value{e})
			line := make(map[string]any)
			noErr(t, json.Unmarshal(text.Bytes(), &line))
			text.Reset()
			message, _ := line["msg"].(string)
			if line["level"] != level || !strings.HasPrefix(message, "redlock: ") {
				t.Errorf("%s: %v, want the level %s", hook, line, level)
			}
			for k, want := range map[string]any{"mutex": "x", "node": "n", "fencing_token": 7.0} {
				if got, ok := line[k]; ok && got != want {
					t.Errorf("%s: %s is %v", hook, k, got)
				}
			}
			if e.FieldByName("Name").IsValid() != (line["mutex"] != nil) || e.FieldByName("Node").IsValid() != (line["node"] != nil) ||
				(i == 1) != (line["error"] == "a fault") {
				t.Errorf("%s: %v", hook, line)
			}
			for k := range line {
				if !key.MatchString(k) {
					t.Errorf("%s: the key %s", hook, k)
				}
			}
		}
	}
	trace.Lost(redlock.Lost{Context: t.Context(), Cause: redlock.LossClosed, Err: redlock.ErrClosed})
	if !strings.Contains(text.String(), `"level":"WARN"`) || !strings.Contains(text.String(), `"cause":"closed"`) {
		t.Errorf("a lease that Close ends: %s", text.String())
	}
}
