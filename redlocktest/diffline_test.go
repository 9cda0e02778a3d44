// The differential test's steps with lines of waiters, and who hears of them.

package redlocktest_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// ear is the channel that somebody listens to.
const ear = "ear"

// waiters are some who are told and some who are not, also for want of a channel.
var waiters = []string{"ear/1", "ear/2", "deaf/1", "ear/x/1", "none", "/1", "deaf/2"}

// tickets are relative to the clock, in us. One is the same for all in a
// second.
var tickets = []int64{-1 << 50, -9_900_000, -1_000_000, -1000, 3_600_000_000, 1 << 50, aligned, aligned}

const aligned = 1

// ahead is the ticket that a clock has left which was ahead.
const ahead = int64(1) << 52

// lineStep fills in a step of those that have to do with lines.
func lineStep(s *step, arg byte, ttl time.Duration) {
	switch s.op {
	case "enlist", "delist":
		s.p = &redlock.Place{Lock: "k", Queue: "line", Waiter: waiters[int(arg)%len(waiters)], Life: 3 * ttl}
		s.number = tickets[arg/8%8]
		if arg%16 == 15 {
			s.p.Life = 0
		} else if arg%16 == 14 {
			s.p.Life = ttl
		}
	case "crowd":
		s.key, s.text = "line", crowd([]int{0, 2, 15, 16}[arg%4])
		if arg/4%2 == 0 {
			s.text = "ear/2 -2 deaf/1 -1 " + s.text
		}
		if arg/8%2 == 0 {
			s.text += fmt.Sprint(" deaf/2 ", ahead)
		}
	}
}

// crowd is a line in which so many do not listen, and the next one does. Two may have
// been called before.
func crowd(deaf int) string {
	var b strings.Builder
	for i := range deaf {
		fmt.Fprintf(&b, "deaf/%02d %d ", i, i)
	}
	return fmt.Sprintf("%sear/1 %d", &b, deaf)
}

// placed is the step with the ticket filled in.
func (s step) placed(now int64) step {
	p := *s.p
	if p.Ticket = now*1000 + s.number; s.number == aligned {
		p.Ticket -= p.Ticket%1_000_000 + 1_000_000
	}
	s.p = &p
	return s
}

// score returns the ticket that a waiter has in a line.
func score(line, waiter string) (n int64, ok bool) {
	fields := strings.Fields(line)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == waiter {
			_, err := fmt.Sscan(fields[i+1], &n)
			return n, err == nil
		}
	}
	return 0, false
}

// looked returns the step with the microsecond at which the server looked at its
// clock, if what it left shows that.
func (s step) looked(before, after data) step {
	if s.op != "enlist" {
		return s
	}
	was, there := score(before["line"].value, s.p.Waiter)
	got, ok := score(after["line"].value, s.p.Waiter)
	switch {
	case !ok:
	case there && (got == max(was, -was) || was == ahead): // else that line has expired since
		s.at = got // or later, if it is what it was
	case got > s.p.Ticket:
		s.at = got + 10_000_000
	case got < s.p.Ticket:
		s.at = got
	}
	return s
}

// lineCovers are the things that a test has to have met besides.
var lineCovers = []string{
	"enlist taken", "enlist absent", "enlist wrong type", "enlist no time",
	"delist", "delist wrong type",
	"ticket early", "ticket late", "ticket tie", "stands already", "comes again", "comes down", "ahead",
	"named", "named after others", "named after one called", "named after the releaser", "nobody named", "nobody named of many", "crowd named", "line wrong type",
}

func (c coverage) countLine(s step, o outcome, before, after data) {
	was := before["line"]
	switch {
	case s.op == "delist" && o.err != nil:
		c["delist wrong type"]++
	case s.op == "delist":
		c["delist"]++
	case s.op == "enlist":
		c.count(s, o)
		got, ok := score(after["line"].value, s.p.Waiter)
		if old, there := score(was.value, s.p.Waiter); there && ok && old == got {
			c["stands already"]++
		} else if there && ok && old < 0 && got == -old {
			c["comes again"]++
		} else if there && ok && old == ahead && got < old {
			c["comes down"]++
		}
		if o.reply.Ahead > 0 {
			c["ahead"]++
		}
		switch {
		case ok && s.at == got && got < s.p.Ticket:
			c["ticket late"]++
		case ok && s.at != 0:
			c["ticket early"]++
		case ok && strings.Count(after["line"].value, fmt.Sprint(" ", got)) > 1:
			c["ticket tie"]++
		}
	case o.reply.Verdict == redlock.Released && s.c.Queue != "":
		left, many := after["line"].value, len(was.value) > 100
		switch {
		case was.kind != "zset" && was.kind != "":
			c["line wrong type"]++
		case o.reply.Named && many:
			c["crowd named"]++
		case o.reply.Named && s.c.Waiter != "" && strings.HasPrefix(was.value, s.c.Waiter+" "):
			c["named after the releaser"]++
		case o.reply.Named && strings.Contains(was.value, " -"):
			c["named after one called"]++
		case o.reply.Named && !strings.HasPrefix(was.value, o.told):
			c["named after others"]++
		case o.reply.Named:
			c["named"]++
		case many && left != "":
			c["nobody named of many"]++
		case was.value != "":
			c["nobody named"]++
		}
	}
}

// hears listens until stop is called. What it hears goes to the channel.
func hears(t testing.TB, n redlock.Waker) (heard <-chan string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	waiters, ready, done := make(chan string, 1000), make(chan struct{}, 1000), make(chan error, 1)
	go func() { done <- n.Listen(ctx, ear, func() { ready <- struct{}{} }, func(w string) { waiters <- w }) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	return waiters, func() { cancel(); <-done }
}

// told returns who was told by a release, if somebody was.
func told(o outcome, heard <-chan string) string {
	if !o.reply.Named {
		return ""
	}
	select {
	case waiter := <-heard:
		return waiter
	case <-time.After(5 * time.Second):
		return "nobody"
	}
}

// lines merges the lines of two states as torn does the expiries.
func (d data) lines(other, found data) data {
	d = maps.Clone(d)
	if k, ok := d["line"]; ok && found["line"].value == other["line"].value {
		k.value = other["line"].value
		d["line"] = k
	}
	return d
}
