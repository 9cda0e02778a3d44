// The options of New and NewMutex.

package redlock

import (
	"log/slog"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// An Option sets one thing for a [Client], as the default of its mutexes, or
// for one [Mutex]. Options are values: they can be kept and used again. Where
// one is given twice the later one counts.
type Option struct {
	name       string
	clientOnly bool
	set        func(*settings)
}

// WithTTL sets how long a node keeps the lock unless it is extended, and with
// it how long a crashed holder blocks others. Whole milliseconds, from 10ms to
// 24h. Default 10s.
func WithTTL(d time.Duration) Option {
	return Option{name: "WithTTL", set: func(s *settings) { s.ttl = d }}
}

// WithDrift sets the allowance for clocks that run at different rates. A drift
// that leaves nothing of the TTL is refused. Default
// Drift{Factor: 0.01, Floor: 2 * time.Millisecond}.
func WithDrift(d Drift) Option {
	return Option{name: "WithDrift", set: func(s *settings) { s.drift = d }}
}

// WithNodeTimeout sets how long one call to one node may take. A node that has
// not answered by then has not voted, and the operation goes on without it. It
// bounds every path, whatever timeouts the Redis client has; it should be a few
// round trips to the farthest node of a quorum, of which an attempt with fencing may need
// two. Above 0, below the TTL. Default
// a quarter of the TTL, within 50ms and 1s, and half of a TTL up to 50ms.
func WithNodeTimeout(d time.Duration) Option {
	return Option{name: "WithNodeTimeout", set: func(s *settings) { s.nodeTimeout, s.timeoutSet = d, true }}
}

// WithMinValidity makes an acquisition that leaves less than d count as
// expired, for holders that need some time to do anything useful. At least 0,
// below the TTL less drift. Default 0.
func WithMinValidity(d time.Duration) Option {
	return Option{name: "WithMinValidity", set: func(s *settings) { s.minValidity = d }}
}

// WithRenewal sets how often the client renews a lease: a little more often than every so long,
// at random. A renewal that fails is repeated while there is validity
// left. Above 0, and below half of the TTL less drift, so that there is time for
// a second try. Default a third of the TTL, or of the TTL less drift if drift is
// large.
func WithRenewal(every time.Duration) Option {
	return Option{name: "WithRenewal", set: func(s *settings) { s.renewal, s.renewalSet, s.noRenewal = every, true, false }}
}

// WithoutRenewal lets a lease end with its TTL unless its holder calls
// [Lease.Extend]. By default leases are renewed.
func WithoutRenewal() Option {
	return Option{name: "WithoutRenewal", set: func(s *settings) { s.noRenewal = true }}
}

// WithMaxHold ends a lease d after its lock was asked for, however often it is
// renewed, with [ErrMaxHold]. It bounds how long a holder that is alive but stuck
// can keep others out. Above 0. By default there is no such bound.
func WithMaxHold(d time.Duration) Option {
	return Option{name: "WithMaxHold", set: func(s *settings) { s.maxHold = d }}
}

// WithBackoff sets how long Lock waits between attempts if no release calls it.
// Default: a random part of a window that doubles from 16ms to 256ms. An attempt
// that comes after others may end with a look that shows that the lock is taken; then
// it waits at least 32 to 96ms, since it expects to be called. The holder's expiry cuts
// the wait short, so that a longer backoff means less polling and nothing worse.
func WithBackoff(b Backoff) Option {
	return Option{name: "WithBackoff", set: func(s *settings) { s.backoff = b }}
}

// WithMaxAttempts makes Lock give up with the last attempt's error after n
// attempts. At least 1. Default: Lock tries until its context ends.
//
// Looks that show that the lock is taken count as attempts, and so do waits behind
// others of the client. With the default backoff 10 of them take about a second. To
// wait for a certain time, give Lock a context with a deadline instead.
func WithMaxAttempts(n int) Option {
	return Option{name: "WithMaxAttempts", set: func(s *settings) { s.maxAttempts, s.attemptsSet = n, true }}
}

// WithKeyPrefix sets what is put before a mutex's name to make its key on the
// nodes. With "" the keys are those that redsync uses, so both libraries keep
// each other out. Default "lock:".
func WithKeyPrefix(prefix string) Option {
	return Option{name: "WithKeyPrefix", set: func(s *settings) { s.keyPrefix = prefix }}
}

// WithoutFencing makes leases without a [Lease.FencingToken], for locks that
// only save work. The nodes then keep no counter. All clients of a lock must
// agree on it. By default there is fencing.
//
// This alone works on a server that runs no scripts too, where the lock is taken
// with SET NX PX. A SET that arrives there after its release, which needs a delay
// of more than the node timeout, leaves a key that goes with its TTL.
func WithoutFencing() Option {
	return Option{name: "WithoutFencing", set: func(s *settings) { s.fencing = false }}
}

// WithFenceRetention sets how long a node keeps the fencing counter of a lock
// after its last use. A token is above every earlier one only as long as the
// counters are there. Whole milliseconds, at least the sum of the TTL, the clock
// bound and an hour, or 0 for ever, which costs each node some 170 bytes for every name
// ever locked. Default 24h, or the least that is allowed if that is more.
func WithFenceRetention(d time.Duration) Option {
	return Option{name: "WithFenceRetention", clientOnly: true, set: func(s *settings) { s.retention, s.retainSet = d, true }}
}

// WithClockBound sets by how much a fencing counter may be ahead of a node's
// clock before the node refuses to count on. It keeps one bad clock from
// dragging the counters of the others with it. Whole microseconds, from 3s to
// 1h. Default 10s.
func WithClockBound(d time.Duration) Option {
	return Option{name: "WithClockBound", clientOnly: true, set: func(s *settings) { s.clockBound = d }}
}

// WithCrashGuard keeps a node whose server started less than d ago out of
// acquisitions: one that comes back with less than it had acknowledged could grant
// a lock that is held, or repeat a fencing token. It is the "delayed restart" of
// the Redlock specification, and needs no clock of the server but for the first
// look. At least the TTL and, with fencing, at least the clock bound plus 1.05 s;
// let it cover the longest TTL of any client, and add by how much the nodes' clocks
// may differ. Nobody can lock for d where all servers start together. All nodes must
// be a [Prober]; a server whose INFO may not be read votes all the same, which is
// reported once to [WithLogger]. Default off: it is not needed where the servers
// run with appendonly yes and appendfsync always.
//
// A new connection costs two more round trips before its first vote counts; with a
// client that is no [redis.Client] every vote does. Where a proxy keeps connections
// while it changes the server behind them, a restart goes unnoticed.
func WithCrashGuard(d time.Duration) Option {
	return Option{name: "WithCrashGuard", clientOnly: true, set: func(s *settings) { s.crashGuard, s.guardSet = d, true }}
}

// WithStrictNodes keeps a node out of acquisitions as long as it is found unfit: it
// is a replica, it is the server of another node as well, or its clock is off the
// median of all nodes' by more than the clock bound and what the look at it took.
// All nodes must be a [Prober]; what a server does not tell, for want of rights, is
// not held against it. A new connection costs two more round trips before its first
// vote counts, and with a client that is no [redis.Client] every vote does. Clocks are
// read again once a minute, and each second while a node is unfit. By default such a
// node has its vote and is reported to [WithLogger].
func WithStrictNodes() Option {
	return Option{name: "WithStrictNodes", clientOnly: true, set: func(s *settings) { s.strict = true }}
}

// WithClock sets the clock that validity is measured on, for tests: a lock is only as
// good as that clock. Default [clock.System].
func WithClock(c clock.Clock) Option {
	return Option{name: "WithClock", clientOnly: true, set: func(s *settings) { s.clock, s.random = c, dice(c) }}
}

// WithTrace sets hooks that are told what the client does. Nil turns them off.
// Default nil.
func WithTrace(t *Trace) Option {
	return Option{name: "WithTrace", clientOnly: true, set: func(s *settings) {
		if t == nil {
			t = &Trace{}
		}
		s.trace = t
	}}
}

// WithLogger sets where the client reports what no caller is told, such as a
// key that could not be cleaned up, or a node that is not fit for locks: with a
// logger it looks at each node that is a [Prober] when it is first used, and then
// once a minute, in the background, and sooner while it gives no votes. Nil turns it
// off. Default nil.
func WithLogger(l *slog.Logger) Option {
	return Option{name: "WithLogger", clientOnly: true, set: func(s *settings) {
		s.logged = l != nil
		if l == nil {
			l = slog.New(slog.DiscardHandler)
		}
		s.logger = l
	}}
}
