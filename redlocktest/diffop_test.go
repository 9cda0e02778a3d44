// The differential test's steps, as data, and what they do to a node in memory.

package redlocktest_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// keys are all keys of a differential test: the lock, three tombstones, and the
// lock's counter and line.
var keys = []string{"k", "tomb:a", "tomb:b", "tomb:c", "fence", "line"}

// bucket is what floors are rounded down to, in us.
const bucket = 1 << 20

// A step is one thing that happens to both nodes.
type step struct {
	op   string
	c    *redlock.Claim // of a call
	key  string         // of another client's command, or to wait for its expiry
	ttl  time.Duration  // of that command, 0 for none
	late int64          // how long after the expiry, in ms

	number int64 // of a raise or rearm, relative to the counter's present value or, without one, to the clock
	text   string

	p     *redlock.Place // of a call for a line
	right bool           // a release with the value that the lock holds

	at int64 // in us, when the server looked at its clock during it; 0 if that is not known
}

func (s step) String() string {
	switch {
	case s.c != nil:
		return fmt.Sprintf("%s %s for %v", s.op, s.c.Value, s.c.TTL)
	case s.p != nil:
		return fmt.Sprintf("%s %s with %d for %v", s.op, s.p.Waiter, s.p.Ticket, s.p.Life)
	case s.op == "wait":
		return fmt.Sprintf("wait for the end of %s and %dms", s.key, s.late)
	}
	return fmt.Sprintf("%s %s for %v", s.op, s.key, s.ttl)
}

// decode makes a step of two bytes. Calls are most of them, waits a quarter.
func decode(kind, arg byte) step {
	value := string("abc"[arg%3])
	ttl := time.Duration(10+arg%37) * time.Millisecond
	key := keys[arg%4]
	if arg%4 != 0 && arg&0x80 != 0 {
		key = keys[0] // the lock is where most happens
	}
	ops := []string{
		"acquire", "acquire", "acquire", "acquire", "extend", "extend", "release", "bury", "bury",
		"set", "set other", "set for ever", "list", "del",
		"wait", "wait", "wait", "wait",
		"count", "count", "count", "raise", "raise", "rearm", "rearm", "keep", "counter",
		"enlist", "enlist", "enlist", "enlist", "enlist", "delist", "crowd", "crowd", "release", "bury",
		"line wait", "line set", "line list", "line del", "counter", "counter", "count",
	}
	op, ofLine := strings.CutPrefix(ops[int(kind)%len(ops)], "line ")
	if ofLine {
		key = "line"
	}
	s := step{op: op}
	switch s.op {
	case "enlist", "delist", "crowd":
		lineStep(&s, arg, ttl)
	case "acquire", "extend", "release", "bury":
		s.c = claim(value, ttl)
		if s.op == "acquire" && arg%8 == 7 {
			s.c.TTL = 0
		}
		if (s.op == "release" || s.op == "bury") && arg/16%4 != 0 {
			s.c.Queue, s.right = "line", arg&0x80 != 0
			s.c.Waiter = []string{"", "first", "deaf/1", "ear/2"}[arg%4]
		}
	case "count", "raise", "rearm", "keep":
		s.c = claim(value, ttl)
		s.c.Fence, s.c.ClockBound = "fence", 10*time.Second
		s.c.Retention = []time.Duration{0, time.Hour, 30 * time.Millisecond}[arg/3%3]
		s.number = []int64{-5, -1, 0, 1, 1000, 60_000_000}[arg/9%6]
		s.c.Hint = []int64{0, 1, bucket, 3 * bucket, 100 * bucket}[arg/5%5]
	case "counter":
		s.key = "fence"
		s.text = []string{"7", "garbage", "-1", "9007199254740991", "9007199254740992", "99999999999999999999", "", "1.5", "007", "+ahead"}[arg%10]
	case "wait":
		s.key, s.late = key, int64(arg/4%4)-1
	case "set", "set other":
		s.key, s.ttl = key, ttl
	default:
		s.key = key
	}
	return s
}

// value is what another client's command writes: sometimes that of a claim.
func (s step) value() string {
	switch s.op {
	case "set other":
		return "other"
	case "counter":
		return s.text
	}
	return "a"
}

// fixed returns the step with the numbers that are relative to what is stored,
// or to the clock, filled in.
func (s step) fixed(before data, now int64) step {
	base := now * 1000
	if n, err := strconv.ParseInt(before["fence"].value, 10, 64); err == nil && n < 1<<60 {
		base = n
	}
	if s.p != nil {
		return s.placed(now)
	}
	if s.c != nil && s.c.Hint != 0 {
		c := *s.c
		c.Hint += now * 1000
		s.c = &c
	}
	if k := before["k"]; s.right && k.kind == "string" {
		c := *s.c
		c.Value = k.value
		s.c = &c
	}
	if s.c != nil && s.c.Waiter == "first" {
		c := *s.c
		c.Waiter, _, _ = strings.Cut(before["line"].value, " ")
		s.c = &c
	}
	s.number += base
	if s.text == "+ahead" {
		s.text = strconv.FormatInt(now*1000+9_000_000, 10)
	}
	return s
}

// call makes the call of a step, if it is one.
func (s step) call(ctx context.Context, n redlock.Waker) outcome {
	var o outcome
	switch s.op {
	case "acquire":
		o.reply, o.err = n.Acquire(ctx, s.c)
	case "extend":
		o.reply, o.err = n.Extend(ctx, s.c)
	case "release", "bury":
		o.reply, o.err = n.Release(ctx, s.c, s.op == "bury")
	case "count":
		o.reply, o.err = n.Acquire(ctx, s.c)
	case "keep":
		o.reply, o.err = n.Extend(ctx, s.c)
	case "raise":
		o.reply, o.err = n.Raise(ctx, s.c, s.number)
	case "rearm":
		o.reply, o.err = n.Rearm(ctx, s.c, s.number)
	case "enlist":
		o.reply, o.err = n.Enlist(ctx, s.p)
	case "delist":
		o.err = n.Delist(ctx, s.p)
	}
	return o
}

// memory is a node in memory at a time of the test's choice.
type memory struct {
	*redlocktest.Node
	clock *manualClock
}

// newMemory returns a node in the given state, at a moment long before now.
func newMemory(now int64, state data) memory {
	clock := &manualClock{}
	clock.set(now - 100_000)
	m := memory{redlocktest.New(1, redlocktest.WithClock(clock)).Node(0), clock}
	for key, k := range state {
		left := time.Duration(k.when-clock.now.Load()) * time.Millisecond
		switch {
		case k.kind == "list":
			m.SetList(key)
		case k.kind == "zset":
			m.SetLine(key, k.value, max(left, 0))
		case k.when == never:
			m.Set(key, k.value, 0)
		default:
			m.Set(key, k.value, left)
		}
	}
	return m
}

// do executes the step in the given millisecond.
func (m memory) do(t testing.TB, s step, now int64) outcome {
	t.Helper()
	m.clock.set(now)
	if s.at/1000 == now {
		m.clock.setMicro(s.at)
	}
	switch s.op {
	case "set", "set other", "set for ever", "counter":
		m.Set(s.key, s.value(), s.ttl)
	case "list":
		m.SetList(s.key)
	case "del":
		m.Del(s.key)
	case "crowd":
		m.SetLine(s.key, s.text, 0)
	}
	if s.c == nil || s.c.Queue == "" {
		return s.call(context.Background(), m)
	}
	heard, stop := hears(t, m)
	defer stop()
	o := s.call(context.Background(), m)
	o.told = told(o, heard)
	return o
}

// data is what a node stores.
type data map[string]datum

type datum struct {
	kind, value string
	when        int64 // the last millisecond in which it is there, or never
}

const never = -1

// dump returns what the node stores now.
func (m memory) dump() data {
	d := data{}
	for _, key := range m.Keys() {
		value, left, ok := m.Get(key)
		kind := "string"
		if line, life := m.Line(key); line != nil {
			kind, value, left, ok = "zset", m.Tickets(key), life, true
		}
		switch {
		case !ok:
			d[key] = datum{"list", "", never}
		case left < 0:
			d[key] = datum{kind, value, never}
		default:
			d[key] = datum{kind, value, m.clock.now.Load() + left.Milliseconds()}
		}
	}
	return d
}

// torn is d with the expiries of another where those were found. A lock that had
// gone by then, so that the other did not renew it, is taken to be renewed so much
// later.
func (d data) torn(other, found, before data, later int64) data {
	d = maps.Clone(d)
	for key, k := range d {
		o, ok := other[key]
		if !ok && k.when != never && k.when != before[key].when {
			o.when = k.when + later
		}
		if (ok || o.when != 0) && found[key].when == o.when {
			k.when = o.when
			d[key] = k
		}
	}
	return d
}
