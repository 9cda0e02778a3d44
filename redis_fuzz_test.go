// What a server may answer, of which nothing must pass for more than it says.

package redlock_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// A parrot is a server that says what it was told to, whatever it is asked, and hangs up
// after each answer: then a part of one is not waited for.
type parrot struct {
	answers [][]byte // one after the other, again and again
	fence   bool     // it is asked for a counter, too
	asked   atomic.Int64
}

func (p *parrot) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		r := bufio.NewReader(there)
		var out bytes.Buffer
		for left, first := 1, true; left > 0; {
			args, err := readRequest(r)
			if err != nil || len(args) == 0 {
				return
			}
			verb := strings.ToLower(args[0])
			if verb == "hello" { // a new connection's
				if _, err := io.WriteString(there, "-ERR unknown command 'HELLO'\r\n"); err != nil {
					return
				}
				continue
			}
			if left--; first { // of those that come together
				left, first = together[verb]-1, false
				if verb == "get" && p.fence {
					left++
				}
			}
			at := int(p.asked.Add(1)-1) % len(p.answers)
			out.Write(p.answers[at])
		}
		_, _ = io.Copy(there, &out)
	}()
	return here, nil
}

// together is how many commands come in one trip that begins with this one.
var together = map[string]int{"evalsha": 1, "eval": 1, "time": 1, "info": 2, "get": 2, "set": 3, "watch": 1}

// says matches what a script answers, wherever it stands.
var says = regexp.MustCompile(`\+?\d+ [+-]?\d+ [+-]?\d+`)

// errorLike matches an error, of RESP3 too, which may come behind something else.
var errorLike = regexp.MustCompile(`(?m)^[-!]`)

// TestParrotsMatch would fail if the fuzz target did not understand what it looks for.
func TestParrotsMatch(t *testing.T) {
	for answer, want := range map[string]redlock.Reply{
		"$7\r\n1 0 600\r\n":                       {Verdict: redlock.Granted, Counter: 600},
		"$7\r\n2 -1 12\r\n":                       {Verdict: redlock.Taken, Remaining: -1, Counter: 12},
		"$20\r\n1 0 9007199254740993\r\n":         {Verdict: redlock.Granted, Counter: 1<<53 + 1},
		"$23\r\n1 0 9223372036854775807\r\n":      {Verdict: redlock.Granted, Counter: math.MaxInt64},
		"$23\r\n2 9223372036854775807 1\r\n":      {Verdict: redlock.Taken, Remaining: -1, Counter: 1},
		"$17\r\n2 9223372036854 1\r\n":            {Verdict: redlock.Taken, Remaining: 9223372036854 * time.Millisecond, Counter: 1},
		"+1 0 5\r\n":                              {Verdict: redlock.Granted, Counter: 5},
		"$5\r\n3 0 0\r\n and nobody asked for it": {Verdict: redlock.Absent},
	} {
		if !said([]byte(answer), want) {
			t.Errorf("%q does not say %+v", answer, want)
		}
		want.Counter++
		if said([]byte(answer), want) {
			t.Errorf("%q says %+v", answer, want)
		}
	}
}

// said reports whether an answer says what was made of it: where a number ends is up to the
// length before it.
func said(answer []byte, r redlock.Reply) bool {
	for from := 0; from < len(answer); {
		at := says.FindIndex(answer[from:])
		if at == nil {
			return false
		}
		parts := strings.Fields(string(answer[from+at[0] : from+at[1]]))
		for n := len(parts[2]); n > 0; n-- {
			verdict, err1 := strconv.ParseInt(parts[0], 10, 64)
			ms, err2 := strconv.ParseInt(parts[1], 10, 64)
			counter, err3 := strconv.ParseInt(parts[2][:n], 10, 64)
			left := time.Duration(-1)
			if ms >= 0 && ms <= math.MaxInt64/int64(time.Millisecond) {
				left = time.Duration(ms) * time.Millisecond
			}
			if err1 == nil && err2 == nil && err3 == nil && verdict == int64(r.Verdict) && left == r.Remaining && counter == r.Counter {
				return true
			}
		}
		from += at[0] + 1
	}
	return false
}

// TestRedisVerdicts: what is known of a command by what a server answers.
func TestRedisVerdicts(t *testing.T) {
	for answer, want := range map[string]redlock.Verdict{
		"$5\r\n1 0 5\r\n":      redlock.Granted,
		"$5\r\n2 9 5\r\n":      redlock.Taken,
		"$3\r\nfoo\r\n":        redlock.Unknown,
		"$5\r\n1 0":            redlock.Unknown, // it was sent
		"":                     redlock.Unknown,
		"-OOM no\r\n":          redlock.Rejected,
		"-LOADING no\r\n":      redlock.Rejected,
		"-REDLOCKAHEAD no\r\n": redlock.Rejected,
		"-WRONGTYPE no\r\n":    redlock.Forbidden,
		"-NOPERM no\r\n":       redlock.Forbidden,
	} {
		p := &parrot{answers: [][]byte{[]byte(answer)}}
		c := redis.NewClient(&redis.Options{Dialer: p.dial, Protocol: 2, DisableIdentity: true})
		r, err := redlock.NewRedisNode("n", c).Acquire(t.Context(), &redlock.Claim{
			Lock: "lock", Fence: "fence", Tombstone: "tomb", Value: "v", TTL: time.Second, Retention: time.Hour, ClockBound: time.Second,
		})
		if r.Verdict != want || (err == nil) != (want == redlock.Granted || want == redlock.Taken) {
			t.Errorf("%q: verdict %d, %v; want %d", answer, r.Verdict, err, want)
		}
		noErr(t, c.Close())
	}
}

// TestRedisNoLine: a server that lets this user run no scripts keeps no lines, and says so
// to the first who asks.
func TestRedisNoLine(t *testing.T) {
	for _, answer := range []string{
		"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", "-ERR unknown command 'evalsha', with args\r\n",
	} {
		p := &parrot{answers: [][]byte{[]byte(answer)}}
		c := redis.NewClient(&redis.Options{Dialer: p.dial, Protocol: 2, DisableIdentity: true})
		n := redlock.NewRedisNode("n", c).(redlock.Waker)
		for range 2 {
			r, err := n.Enlist(t.Context(), &redlock.Place{Lock: "lock", Queue: "line", Waiter: "c/1", Ticket: 1, Life: time.Second})
			if r.Verdict != redlock.Forbidden || err == nil {
				t.Errorf("verdict %d, %v", r.Verdict, err)
			}
		}
		noErr(t, c.Close())
	}
}

// FuzzReplies: whatever a server answers to a script, the node says no more than that,
// with a verdict that it may have, and a number that is exact. What was sent is not
// called unsent, and what the server did not refuse is not called refused.
func FuzzReplies(f *testing.F) {
	for i, answer := range []string{
		"$5\r\n1 0 5\r\n", "$5\r\n2 0 5\r\n", "+3 0 0\r\n", "$5\r\n4 0 0\r\n", "$5\r\n5 0 1\r\n",
		"$20\r\n1 0 9007199254740993\r\n", "$23\r\n1 0 9223372036854775807\r\n", "$23\r\n1 0 9223372036854775808\r\n",
		"$5\r\n0 0 0\r\n", "$5\r\n6 0 0\r\n", "$6\r\n1 0 -5\r\n", "$7\r\n257 0 0\r\n", "$3\r\n1 0\r\n", "$-1\r\n", ":1\r\n",
		"*3\r\n:1\r\n:0\r\n:5\r\n", "_\r\n", "#t\r\n", "=9\r\ntxt:1 0 5\r\n", "$5\r\n1 0", "",
		"-NOSCRIPT No matching script.\r\n", "-ERR unknown command 'evalsha'\r\n", "-NOPERM no\r\n", "-1 0 5\r\n", "-OOM no\r\n",
		"-WRONGTYPE no\r\n", "-REDLOCKAHEAD no\r\n", "-LOADING no\r\n", "-MOVED 1 nowhere:1\r\n", "-ASK 1 nowhere:1\r\n",
	} {
		f.Add(byte(i), []byte(answer))
	}
	f.Fuzz(func(t *testing.T, op byte, answer []byte) {
		p := &parrot{answers: [][]byte{answer}}
		c := redis.NewClient(&redis.Options{
			Dialer: p.dial, Protocol: 2, DisableIdentity: true,
			DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second,
		})
		defer c.Close()
		n := redlock.NewRedisNode("n", c)
		claim := &redlock.Claim{
			Lock: "lock", Tombstone: "tomb", Queue: "line", Value: "v", TTL: time.Second,
			Retention: time.Hour, ClockBound: time.Second,
		}
		if op&0x10 == 0 {
			claim.Fence = "fence"
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var r redlock.Reply
		var err error
		shown := func(r redlock.Reply) redlock.Reply { return r }
		switch op % 6 {
		case 0:
			r, err = n.Acquire(ctx, claim)
		case 1:
			claim.Fence = "fence"
			r, err = n.Raise(ctx, claim, 7)
		case 2:
			r, err = n.Extend(ctx, claim)
		case 3:
			r, err = n.Rearm(ctx, claim, 7)
		case 4:
			r, err = n.Release(ctx, claim, op&0x20 != 0)
			if r.Counter != 0 {
				t.Errorf("a release has the number %d", r.Counter)
			}
			shown = func(r redlock.Reply) redlock.Reply { // somebody was called, or not
				for _, s := range says.FindAll(answer, -1) {
					number := strings.Fields(string(s))[2]
					for i := range number {
						n, err := strconv.ParseInt(number[:i+1], 10, 64)
						if err == nil && (n != 0) == r.Named {
							r.Counter = n
							return r
						}
					}
				}
				return r
			}
		case 5:
			r, err = n.(redlock.Waker).Enlist(ctx, &redlock.Place{Lock: "lock", Queue: "line", Waiter: "c/1", Ticket: 1, Life: time.Second})
			shown = func(r redlock.Reply) redlock.Reply { r.Counter = r.Ahead; return r }
		}
		refused := errorLike.Match(answer)
		switch v := r.Verdict; {
		case p.asked.Load() == 0:
			t.Errorf("the server was asked for nothing: %+v, %v", r, err)
		case err == nil && (v < redlock.Granted || v > redlock.Released):
			t.Errorf("%q: verdict %d without an error", answer, v)
		case err == nil && !said(answer, shown(r)):
			t.Errorf("%q: %+v", answer, r)
		case err == nil:
		// It runs no scripts, or not this one, and what was to come instead could not be sent.
		case v == redlock.Unsent && refused && (claim.Fence == "" || bytes.Contains(answer, []byte("NOSCRIPT"))):
		case v != redlock.Unknown && v != redlock.Rejected && v != redlock.Forbidden:
			t.Errorf("%q: verdict %d with %v", answer, v, err)
		case v != redlock.Unknown && !refused:
			t.Errorf("%q: refused with %v", answer, err)
		}
		for _, clear := range []string{"$5\r\n1 0 5\r\n", "$5\r\n2 0 5\r\n", "$5\r\n3 0 0\r\n"} {
			if string(answer) == clear && err != nil {
				t.Errorf("%q: %v", answer, err)
			}
		}
	})
}

// FuzzTold: what a server tells about itself and a lock makes nothing panic, and a lock is
// held by whom it says.
func FuzzTold(f *testing.F) {
	const sep = "\x00"
	for i, answers := range []string{
		"$1\r\nv\r\n" + sep + ":5\r\n" + sep + "$16\r\n9007199254740993\r\n",
		"$1\r\nv\r\n" + sep + ":-1\r\n", "$1\r\nv\r\n" + sep + ":-2\r\n", "$1\r\nv\r\n" + sep + ":9223372036854775807\r\n",
		"$-1\r\n", "-WRONGTYPE no\r\n", "*2\r\n$10\r\n1700000000\r\n$6\r\n999999\r\n", "*2\r\n$1\r\nx\r\n$-1\r\n", "*0\r\n",
		"$30\r\nrun_id:x\r\nuptime_in_seconds:-9\r\n" + sep + "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n",
		"%1\r\n$11\r\nappendfsync\r\n_\r\n", "-NOPERM no\r\n",
	} {
		f.Add(byte(i), []byte(answers))
	}
	f.Fuzz(func(t *testing.T, op byte, answers []byte) {
		p := &parrot{answers: bytes.Split(answers, []byte(sep))}
		c := redis.NewClient(&redis.Options{
			Dialer: p.dial, Protocol: 2, DisableIdentity: true,
			DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second,
		})
		defer c.Close()
		n := redlock.NewRedisNode("n", c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if op%2 == 0 {
			infos, err := n.(redlock.Prober).Probe(ctx)
			if err == nil && len(infos) != 1 {
				t.Errorf("one server is %d", len(infos))
			}
			return
		}
		fence := ""
		if op%4 == 1 {
			fence, p.fence = "fence", true
		}
		s, err := n.(redlock.Inspector).Inspect(ctx, "lock", fence)
		switch {
		case err != nil:
		case s.Held && !bytes.Contains(answers, []byte(s.Value)):
			t.Errorf("%q: held by %q", answers, s.Value)
		case !s.Held && s.Value != "":
			t.Errorf("%q: not held, by %q", answers, s.Value)
		case s.Counter != 0 && !bytes.Contains(answers, []byte(strconv.FormatInt(s.Counter, 10))):
			t.Errorf("%q: the counter is %d", answers, s.Counter)
		}
	})
}
