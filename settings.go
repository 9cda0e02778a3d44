// The values behind the options, and which of them are at fault.

package redlock

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// Bounds of a TTL, and of a clock bound.
const (
	minTTL, maxTTL     = 10 * time.Millisecond, 24 * time.Hour
	minBound, maxBound = 3 * time.Second, time.Hour
)

// settings are the values behind the options.
type settings struct {
	ttl         time.Duration
	drift       Drift
	nodeTimeout time.Duration // 0 until resolved, unless set
	timeoutSet  bool
	minValidity time.Duration
	renewal     time.Duration // 0 without; resolved from the TTL unless set
	renewalSet  bool
	noRenewal   bool
	maxHold     time.Duration
	backoff     Backoff
	maxAttempts int
	attemptsSet bool
	keyPrefix   string

	fencing    bool
	retention  time.Duration // of counters; 0 for ever; resolved from the TTL unless set
	retainSet  bool
	clockBound time.Duration
	crashGuard time.Duration // 0 without
	guardSet   bool
	strict     bool

	clock  clock.Clock
	random func() float64
	trace  *Trace
	logger *slog.Logger
	logged bool // somebody reads it
}

func defaults() settings {
	return settings{
		ttl:       10 * time.Second,
		drift:     Drift{Factor: 0.01, Floor: 2 * time.Millisecond},
		maxHold:   math.MaxInt64,
		backoff:   fullJitter,
		keyPrefix: "lock:",

		fencing:    true,
		clockBound: 10 * time.Second,

		clock:  clock.System,
		random: dice(clock.System),
		trace:  &Trace{},
		logger: slog.New(slog.DiscardHandler),
	}
}

// with returns the settings changed by opts, or every fault of them.
func (s settings) with(opts []Option, forMutex bool) (settings, []error) {
	var faults []error
	for _, o := range opts {
		switch {
		case o.set == nil:
			faults = append(faults, errors.New("Option{}: is none; use a function that returns one"))
		case o.clientOnly && forMutex:
			faults = append(faults, fmt.Errorf("%s: is an option of New, not of NewMutex", o.name))
		default:
			o.set(&s)
		}
	}
	if !s.timeoutSet {
		s.nodeTimeout = defaultNodeTimeout(s.ttl)
	}
	if !s.retainSet {
		s.retention = max(24*time.Hour, s.leastRetention())
	}
	switch {
	case s.noRenewal:
		s.renewal, s.renewalSet = 0, false
	case !s.renewalSet:
		s.renewal = s.ttl / 3
		if validity := s.drift.Validity(s.ttl, 0); s.renewal >= validity/2 {
			s.renewal = validity / 3
		}
	}
	return s, append(faults, s.faults()...)
}

func (s settings) leastRetention() time.Duration { return s.ttl + s.clockBound + time.Hour }

// leastGuard is how long a node must have been away for its own memory not to
// matter: until all it had granted has expired, and all its numbers are below its
// clock.
func (s settings) leastGuard() time.Duration {
	if !s.fencing {
		return s.ttl
	}
	return max(s.ttl, s.clockBound+bucket*time.Microsecond)
}

func defaultNodeTimeout(ttl time.Duration) time.Duration {
	const least = 50 * time.Millisecond
	if ttl <= least {
		return ttl / 2
	}
	return max(least, min(time.Second, ttl/4))
}

// faults returns all that is wrong with s, each naming the option and its value.
func (s settings) faults() []error {
	var faults []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, brief(args)...))
		}
	}

	fault(s.ttl >= minTTL && s.ttl <= maxTTL, "WithTTL(%v): must be from %v to %v", s.ttl, minTTL, maxTTL)
	fault(len(faults) > 0 || s.ttl%time.Millisecond == 0, "WithTTL(%v): must be whole milliseconds, the unit of expiries in Redis", s.ttl)

	// Where a bound rests on a value that is itself at fault, say so once.
	ttlOK, driftOK := len(faults) == 0, true
	if f := s.drift.Factor; !(f >= 0 && f < 1) || math.IsNaN(f) {
		fault(false, "WithDrift(Factor: %v): must be at least 0 and below 1", f)
		driftOK = false
	}
	if s.drift.Floor < 0 {
		fault(false, "WithDrift(Floor: %v): must not be negative", s.drift.Floor)
		driftOK = false
	}
	fault(s.minValidity >= 0, "WithMinValidity(%v): must not be negative", s.minValidity)
	if ttlOK && driftOK {
		most := s.drift.Validity(s.ttl, 0)
		fault(most > 0, "WithDrift(%v, %v): leaves nothing of the TTL of %v", s.drift.Factor, s.drift.Floor, s.ttl)
		fault(most <= 0 || s.renewal < most/2, "WithRenewal(%v): must be below half of the TTL less drift, %v", s.renewal, most/2)
		fault(most <= 0 || s.minValidity < most, "WithMinValidity(%v): must be below the TTL less drift, %v", s.minValidity, most)
	}
	fault(!s.timeoutSet || s.nodeTimeout > 0, "WithNodeTimeout(%v): must be above 0", s.nodeTimeout)
	fault(!ttlOK || s.nodeTimeout < s.ttl, "WithNodeTimeout(%v): must be below the TTL of %v", s.nodeTimeout, s.ttl)

	fault(s.noRenewal || !s.renewalSet || s.renewal > 0, "WithRenewal(%v): must be above 0", s.renewal)
	fault(s.maxHold > 0, "WithMaxHold(%v): must be above 0", s.maxHold)
	fault(s.maxHold <= 0 || s.minValidity < s.maxHold, "WithMaxHold(%v): must be above WithMinValidity(%v)", s.maxHold, s.minValidity)
	fault(s.clockBound >= minBound && s.clockBound <= maxBound, "WithClockBound(%v): must be from %v to %v", s.clockBound, minBound, maxBound)
	fault(s.clockBound%time.Microsecond == 0, "WithClockBound(%v): must be whole microseconds", s.clockBound)
	if s.retention != 0 && s.fencing {
		fault(s.retention >= s.leastRetention(), "WithFenceRetention(%v): must be 0 or at least %v: the TTL plus the clock bound plus an hour",
			s.retention, s.leastRetention())
		fault(s.retention%time.Millisecond == 0, "WithFenceRetention(%v): must be whole milliseconds", s.retention)
	}
	if s.guardSet && ttlOK {
		fault(s.crashGuard >= s.leastGuard(), "WithCrashGuard(%v): must be at least %v: the TTL, and with fencing the clock bound plus 1.05s", s.crashGuard, s.leastGuard())
	}
	fault(s.backoff != nil, "WithBackoff(nil): must be a function")
	fault(!s.attemptsSet || s.maxAttempts >= 1, "WithMaxAttempts(%d): must be at least 1", s.maxAttempts)
	fault(s.clock != nil, "WithClock(nil): must be a clock")
	return faults
}

// brief writes durations as the documentation does: 24h, not 24h0m0s.
func brief(args []any) []any {
	for i, a := range args {
		d, ok := a.(time.Duration)
		if !ok {
			continue
		}
		s := d.String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		args[i] = s
	}
	return args
}

// joined makes one error of all faults, with every one on the same line.
func joined(op string, faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return &configError{op: op, faults: faults}
}

type configError struct {
	op     string
	faults []error
}

func (e *configError) Error() string {
	parts := make([]string, len(e.faults))
	for i, err := range e.faults {
		parts[i] = err.Error()
	}
	return fmt.Sprintf("redlock: %s: %s", e.op, strings.Join(parts, "; "))
}

func (e *configError) Unwrap() []error { return e.faults }

var errNilContext = errors.New("context is nil")
