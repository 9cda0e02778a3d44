// Options in any combination: refused in words, or within all bounds that are documented.

package redlock_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
)

// spans are times at which something changes, or close by.
var spans = []time.Duration{
	0, 1, -1, time.Microsecond, time.Millisecond, 2 * time.Millisecond, 9 * time.Millisecond, 10 * time.Millisecond,
	10*time.Millisecond + 1, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second,
	11049 * time.Millisecond, 12 * time.Second, time.Minute, time.Hour, time.Hour + 20*time.Second, 24 * time.Hour,
	24*time.Hour + time.Millisecond, 25*time.Hour + 10*time.Second, 26 * time.Hour, math.MaxInt64, math.MinInt64,
}

// chosen are options that a fuzzer has made up, and their names.
type chosen struct {
	options []redlock.Option
	names   []string
}

// choose makes options of nine bytes each: which, and a number for it.
func choose(program []byte) (c chosen) {
	for ; len(program) >= 9 && len(c.options) < 24; program = program[9:] {
		raw := binary.LittleEndian.Uint64(program[1:])
		d := time.Duration(raw)
		if raw < 256 { // most random numbers are far from any bound
			d = spans[int(raw)%len(spans)]
		}
		var o redlock.Option
		name := []string{
			"WithTTL", "WithDrift", "WithNodeTimeout", "WithMinValidity", "WithRenewal", "WithoutRenewal", "WithMaxHold",
			"WithBackoff", "WithMaxAttempts", "WithKeyPrefix", "WithoutFencing", "WithFenceRetention", "WithClockBound",
			"WithCrashGuard", "WithStrictNodes", "WithClock", "WithTrace", "WithLogger", "Option{}", // the zero one
		}[program[0]%19]
		switch name {
		case "WithTTL":
			o = redlock.WithTTL(d)
		case "WithDrift":
			o = redlock.WithDrift(redlock.Drift{Factor: math.Float64frombits(raw), Floor: 2 * time.Millisecond})
			if raw < 1<<56 {
				o = redlock.WithDrift(redlock.Drift{Factor: float64(raw>>8) / (1 << 40), Floor: spans[int(raw&255)%len(spans)]})
			}
		case "WithNodeTimeout":
			o = redlock.WithNodeTimeout(d)
		case "WithMinValidity":
			o = redlock.WithMinValidity(d)
		case "WithRenewal":
			o = redlock.WithRenewal(d)
		case "WithoutRenewal":
			o = redlock.WithoutRenewal()
		case "WithMaxHold":
			o = redlock.WithMaxHold(d)
		case "WithBackoff":
			if o = redlock.WithBackoff(nil); raw%2 > 0 {
				o = pauseOf(d)
			}
		case "WithMaxAttempts":
			o = redlock.WithMaxAttempts(int(raw))
		case "WithKeyPrefix":
			o = redlock.WithKeyPrefix(string(program[1:9]))
		case "WithoutFencing":
			o = redlock.WithoutFencing()
		case "WithFenceRetention":
			o = redlock.WithFenceRetention(d)
		case "WithClockBound":
			o = redlock.WithClockBound(d)
		case "WithCrashGuard":
			o = redlock.WithCrashGuard(d)
		case "WithStrictNodes":
			o = redlock.WithStrictNodes()
		case "WithClock":
			if o = redlock.WithClock(nil); raw%2 > 0 {
				o = redlock.WithClock(clock.System)
			}
		case "WithTrace":
			o = redlock.WithTrace(nil)
		case "WithLogger":
			if o = redlock.WithLogger(nil); raw%2 > 0 {
				o = redlock.WithLogger(slog.New(slog.DiscardHandler))
			}
		}
		c.options, c.names = append(c.options, o), append(c.names, name)
	}
	return c
}

// faultLike is how a fault names an option and its value.
var faultLike = regexp.MustCompile(`^(With\w+|Option\{\})(\(.*\))?: `)

// judge checks an error: each fault is that of an option that was given, or of one whose
// default does not go with those that were.
func (c chosen) judge(t *testing.T, err error) {
	t.Helper()
	faults, ok := err.(interface{ Unwrap() []error })
	if !ok || len(faults.Unwrap()) == 0 || strings.Contains(err.Error(), "\n") {
		t.Fatalf("not a list of faults on one line: %q", err)
	}
	given := 0
	for _, fault := range faults.Unwrap() {
		m := faultLike.FindStringSubmatch(fault.Error())
		switch {
		case m == nil && !strings.HasPrefix(fault.Error(), "name "):
			t.Errorf("a fault of no option: %v", fault)
		case m == nil || slices.Contains(c.names, m[1]):
			given++
		}
	}
	if given == 0 {
		t.Errorf("given were %q, and at fault is %v", c.names, err)
	}
}

// bounds returns what is wrong with settings by the comments of the options.
func bounds(s redlock.Resolved) (wrong []string) {
	check := func(ok bool, what string) {
		if !ok {
			wrong = append(wrong, what)
		}
	}
	check(s.TTL >= 10*time.Millisecond && s.TTL <= 24*time.Hour && s.TTL%time.Millisecond == 0, "TTL")
	check(s.Drift.Factor >= 0 && s.Drift.Factor < 1 && s.Drift.Floor >= 0, "drift")
	validity := s.Drift.Validity(s.TTL, 0)
	check(validity > 0, "drift that eats the TTL")
	check(s.NodeTimeout > 0 && s.NodeTimeout < s.TTL, "node timeout")
	check(s.MinValidity >= 0 && s.MinValidity < validity, "least validity")
	check(s.Renewal >= 0 && (s.Renewal == 0 || s.Renewal < validity/2), "renewal")
	check(s.MaxHold > 0, "longest hold")
	check(s.MaxAttempts >= 0, "attempts")
	check(s.ClockBound >= 3*time.Second && s.ClockBound <= time.Hour && s.ClockBound%time.Microsecond == 0, "clock bound")
	if s.Fencing && s.Retention != 0 {
		check(s.Retention >= s.TTL+s.ClockBound+time.Hour && s.Retention%time.Millisecond == 0, "retention")
	}
	if s.CrashGuard != 0 {
		check(s.CrashGuard >= s.TTL && (!s.Fencing || s.CrashGuard >= s.ClockBound+1048576*time.Microsecond), "crash guard")
	}
	return wrong
}

// FuzzOptions: New and NewMutex refuse options, naming them, or make something that is
// within all bounds; they do no I/O and do not panic.
func FuzzOptions(f *testing.F) {
	option := func(kind byte, n uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{kind}, n) }
	for kind := range byte(19) {
		for n := range uint64(len(spans)) {
			if (int(n)+int(kind))%4 == 0 {
				f.Add(option(kind, n), option((kind+7)%19, n/2))
			}
		}
	}
	f.Add(slices.Concat(option(0, 19), option(12, 17), option(11, 21), option(13, 18)), option(0, 7))
	var clients []redis.UniversalClient
	for i := range 3 {
		clients = append(clients, unreachable(f, fmt.Sprint("127.0.0.1:", i+1)))
	}
	f.Fuzz(func(t *testing.T, ofClient, ofMutex []byte) {
		given := choose(ofClient)
		c, err := redlock.New(redlock.Redis(clients...), given.options...)
		if err != nil {
			if c != nil {
				t.Error("a client, and an error")
			}
			given.judge(t, err)
			return
		}
		defer func() { noErr(t, c.Close()) }()
		more := choose(ofMutex)
		more.names = append(more.names, given.names...) // whose values the mutex has
		m, err := c.NewMutex("x", more.options...)
		if err != nil {
			if m != nil {
				t.Error("a mutex, and an error")
			}
			more.judge(t, err)
			return
		}
		if wrong := bounds(m.Resolved()); wrong != nil {
			t.Errorf("accepted: %q and %q, with a bad %q: %s", given.names, more.names, wrong, fmt.Sprintf("%+v", m.Resolved()))
		}
	})
}
