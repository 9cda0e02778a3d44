// What the scripts are asked, and how they answer.

package redlock

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/internal/script"
)

// A request is one call of a script: its keys, its value, and numbers. The
// strings are pointers into a claim, which saves a copy of each on the way to
// the connection.
type request struct {
	script  *script.Script
	key     [3]*string
	value   *string
	number  [2]int64
	numbers int
	last    *string // the last argument, if any
}

// packed returns the limits of the counter as one argument: a Redis that wants a
// password takes no more than ten from those who have not given it, and answers
// a longer command with a protocol error instead of NOAUTH.
func (c *Claim) packed() *string {
	if c.limits == "" {
		limits := packLimits(c.Retention, c.ClockBound)
		return &limits
	}
	return &c.limits
}

func packLimits(retention, bound time.Duration) string {
	return fmt.Sprintf("%d:%d", retention.Milliseconds(), bound.Microseconds())
}

func acquireRequest(c *Claim) request {
	q := request{
		script: &script.Take,
		key:    [3]*string{&c.Lock, &c.Tombstone}, value: &c.Value,
		number: [2]int64{c.TTL.Milliseconds(), c.Hint}, numbers: 1,
	}
	if c.Fence != "" {
		q.script, q.key[2], q.numbers, q.last = &script.Acquire, &c.Fence, 2, c.packed()
	}
	return q
}

func raiseRequest(c *Claim, number int64) request {
	return request{
		script: &script.Raise,
		key:    [3]*string{&c.Lock, &c.Fence}, value: &c.Value,
		number: [2]int64{number}, numbers: 1, last: c.packed(),
	}
}

func rearmRequest(c *Claim, token int64) request {
	if c.Fence == "" {
		return acquireRequest(c)
	}
	return request{
		script: &script.Rearm,
		key:    [3]*string{&c.Lock, &c.Tombstone, &c.Fence}, value: &c.Value,
		number: [2]int64{c.TTL.Milliseconds(), token}, numbers: 2, last: c.packed(),
	}
}

func extendRequest(c *Claim) request {
	q := request{
		script: &script.Extend,
		key:    [3]*string{&c.Lock}, value: &c.Value,
		number: [2]int64{c.TTL.Milliseconds(), c.Retention.Milliseconds()}, numbers: 2,
	}
	if c.Fence != "" {
		q.key[1] = &c.Fence
	}
	return q
}

func releaseRequest(c *Claim, bury bool, unaware int64) request {
	q := request{
		script: &script.Release,
		key:    [3]*string{&c.Lock, &c.Tombstone}, value: &c.Value,
		number: [2]int64{0, unaware}, numbers: 2,
	}
	if c.Queue != "" {
		q.key[2] = &c.Queue
	}
	if c.Waiter != "" {
		q.last = &c.Waiter
	}
	if bury {
		q.number[0] = c.TTL.Milliseconds()
	}
	return q
}

func enlistRequest(p *Place) request {
	return request{
		script: &script.Enlist,
		key:    [3]*string{&p.Lock, &p.Queue}, value: &p.Waiter,
		number: [2]int64{p.Ticket, p.Life.Milliseconds()}, numbers: 2,
	}
}

// A form is how a script is named to the server.
type form int

const (
	byName form = iota
	bySource
)

var (
	verbs  = [...]string{byName: "evalsha", bySource: "eval"}
	counts = [...]string{"0", "1", "2", "3"}
)

// appendTo appends the command's arguments to args. They point into q.
func (q *request) appendTo(args []any, f form) []any {
	body := &q.script.SHA
	if f == bySource {
		body = &q.script.Source
	}
	args = append(args, &verbs[f], body, nil)
	for _, key := range q.key {
		if key != nil {
			args = append(args, key)
		}
	}
	args[2] = &counts[len(args)-3]
	args = append(args, q.value)
	for i := range q.numbers {
		args = append(args, &q.number[i])
	}
	if q.last != nil {
		args = append(args, q.last)
	}
	return args
}

// parseReply reads "verdict remaining counter" as the scripts write it.
func parseReply(b []byte) (Reply, error) {
	code, rest, _ := bytes.Cut(b, []byte(" "))
	left, number, _ := bytes.Cut(rest, []byte(" "))
	v, err1 := strconv.ParseUint(string(code), 10, 8)
	ms, err2 := strconv.ParseInt(string(left), 10, 64)
	counter, err3 := strconv.ParseInt(string(number), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || v < uint64(Granted) || v > uint64(Released) || counter < 0 {
		return Reply{}, fmt.Errorf("unintelligible answer %q", bytes.Clone(b))
	}
	return Reply{Verdict: Verdict(v), Remaining: milliseconds(ms), Counter: counter}, nil
}

// milliseconds is what is left of a key's life by its PTTL. An expiry beyond what
// a Duration holds is 292 years off: as good as none.
func milliseconds(ms int64) time.Duration {
	if ms < 0 || ms > int64(noLimit/time.Millisecond) {
		return -1
	}
	return time.Duration(ms) * time.Millisecond
}
