// The commands that nodes send through go-redis, and what their errors mean.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

func newCommand(ctx context.Context, q request, f form) *command {
	cmd := new(command)
	cmd.init(ctx, q, f)
	return cmd
}

func (c *command) init(ctx context.Context, q request, f form) {
	c.request = q
	place(&c.ZeroCopyStringCmd, redis.NewZeroCopyStringCmd(ctx, c.reply[:], c.appendTo(c.args[:0], f)...))
}

// place puts what nobody has used yet where to is. It saves one allocation in two.
func place[T any](to, from *T) { *to = *from }

// A command is one that go-redis sends at most once and never to two servers:
// that holds for every ZeroCopyStringCmd. By default it sends a command up to
// three times more after a lost reply, and then reports what the last of them
// met, which is the key that the first has set.
type command struct {
	redis.ZeroCopyStringCmd
	fate atomic.Int32
	call *call // of one that travels with others

	request // what args points to
	args    [10]any
	reply   [64]byte
}

// The fates of a command. It has one of the last two for good.
const (
	fresh int32 = iota
	written
	revoked
)

// nothing is written in place of a command that was revoked, since there has to be a
// reply.
var nothing = []any{"ping"}

// Args is what a connection asks for in order to write the command. Until then
// nothing can have left. One that nobody wants any more is not written.
func (c *command) Args() []any {
	fate := written
	if c.call != nil && c.call.dead() {
		fate = revoked
	}
	if !c.fate.CompareAndSwap(fresh, fate) {
		fate = c.fate.Load()
	}
	if fate == revoked {
		return nothing
	}
	return c.ZeroCopyStringCmd.Args()
}

// result returns what came of the command, where err is what the client says.
func (c *command) result(err error) (Reply, error) {
	switch fate := c.fate.Load(); {
	case fate == revoked:
		return Reply{Verdict: Unsent}, errGivenUp
	case err == nil, len(c.Bytes()) > 0: // read before the connection failed for those behind
		return parseReply(c.Bytes())
	default:
		return failed(err, fate == written)
	}
}

// returned reports whether something came of the command.
func (c *command) returned() bool { return c.Err() != nil || len(c.Bytes()) > 0 }

// failed returns what is known of a command with an error, that has or has not
// been written to a connection.
func failed(err error, written bool) (Reply, error) {
	if _, ok := errors.AsType[redis.Error](err); ok && !errors.Is(err, redis.Nil) {
		for _, prefix := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "REDLOCKCOUNTER", "unknown command", "The user executing the script can't"} {
			if redis.HasErrorPrefix(err, prefix) {
				return Reply{Verdict: Forbidden}, err
			}
		}
		return Reply{Verdict: Rejected}, err
	}
	if !written {
		return Reply{Verdict: Unsent}, err
	}
	return Reply{}, err
}

// naming adds to an error about what is stored under a key which key that is:
// somebody has to go and look, and a server does not say.
func naming(c *Claim, err error) error {
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("%w: key %q", err, abbreviate(c.Lock))
	case redis.HasErrorPrefix(err, "REDLOCK"):
		return fmt.Errorf("%w: key %q", err, abbreviate(c.Fence))
	}
	return err
}

func noScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// noScripting reports whether a server refused to run scripts at all: it does not
// know the command, or does not let this user use it.
func noScripting(err error) bool {
	if err == nil || !redis.HasErrorPrefix(err, "NOPERM") && !redis.HasErrorPrefix(err, "unknown command") {
		return false
	}
	text := err.Error()
	for _, verb := range verbs {
		if strings.Contains(text, "'"+verb+"'") || strings.Contains(text, "`"+verb+"`") {
			return true
		}
	}
	return false
}

// A once is a command that is sent at most once.
type once struct {
	*redis.Cmd
	written atomic.Bool
}

func newOnce(ctx context.Context, args ...any) *once {
	return &once{Cmd: redis.NewCmd(ctx, args...)}
}

// NoRetry makes go-redis send the command, and all that travels with it, once.
func (o *once) NoRetry() bool { return true }

// Args is what a connection asks for in order to write the command.
func (o *once) Args() []any {
	o.written.Store(true)
	return o.Cmd.Args()
}

// sendAll sends commands in one trip. Each has its own error.
func sendAll[C redis.Cmder](ctx context.Context, pipe redis.Pipeliner, cmds ...C) {
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // queues it
	}
	_, _ = pipe.Exec(ctx)
}

// stored is what a lock holds, by a GET and a PTTL that have read it. It may have
// expired between the two.
func stored(get, left *once) (LockState, error) {
	value, err := get.Text()
	switch {
	case errors.Is(err, redis.Nil):
		return LockState{}, nil
	case err != nil:
		return LockState{}, err
	}
	const gone = -2
	ms, err := left.Int64()
	if err != nil || ms == gone {
		return LockState{}, err
	}
	return LockState{Held: true, Value: value, Remaining: milliseconds(ms)}, nil
}
