// Drift and validity: how long a lock may be trusted. Pure arithmetic.

package redlock

import (
	"math"
	"math/bits"
	"time"
)

// Drift is what is taken off a lock's TTL for clocks that do not run alike.
//
// A node whose clock is fast by the rate rn drops a key of the lifetime TTL
// after TTL/(1+rn), and a client whose clock is slow by rc thinks that less
// time has passed than has. The holder is safe if it stops early by at least
// TTL*(rn+rc). Offsets between clocks do not matter, since only relative
// expiries are sent.
//
// The default, 1 % and 2 ms, is that of the Redlock reference implementation
// and covers 10,000 ppm in total. Kernel clock discipline stays below 500 ppm,
// but chrony may slew a clock by up to 8.3 %; where it is let, set Factor to
// 0.1 or bound its maxslewrate.
type Drift struct {
	// Factor bounds the relative rate error of any node's clock and the
	// client's, added up. At least 0, below 1; it counts in parts per billion,
	// rounded up. Default 0.01.
	Factor float64

	// Floor is the part that does not grow with the TTL: the millisecond that
	// Redis rounds expiries to, and one more. Not negative. Default 2ms.
	Floor time.Duration

	_ struct{}
}

// Of returns ttl*Factor + Floor, rounded up to whole nanoseconds. Values outside
// their bounds err towards more drift, and the result saturates at the largest
// Duration.
func (d Drift) Of(ttl time.Duration) time.Duration {
	// In integers, since a float product may round down, and then a holder
	// would trust its lock too long by a hair.
	hi, lo := bits.Mul64(uint64(max(ttl, 0)), d.partsPerBillion())
	lo, carry := bits.Add64(lo, billion-1, 0)
	hi += carry
	if hi >= billion { // the quotient does not fit 64 bits
		return math.MaxInt64
	}
	part, _ := bits.Div64(hi, lo, billion)
	if part > math.MaxInt64 {
		return math.MaxInt64
	}
	return saturatingAdd(time.Duration(part), max(d.Floor, 0))
}

const billion = 1_000_000_000

// partsPerBillion returns Factor in the unit that it counts in, rounded up.
func (d Drift) partsPerBillion() uint64 {
	switch ppb := math.Ceil(d.Factor * billion); {
	case ppb <= 0:
		return 0
	case ppb < billion:
		return uint64(ppb)
	default: // 1, more, or not a number: as much drift as there can be
		return billion
	}
}

// Validity returns for how long a lock of the given TTL may be trusted when
// elapsed has passed since just before the first node was asked:
//
//	TTL - elapsed - (TTL*Factor + Floor)
//
// It is zero when nothing is left, and never more than ttl. A negative elapsed
// is a clock's fault and counts as zero.
func (d Drift) Validity(ttl, elapsed time.Duration) time.Duration {
	used := saturatingAdd(max(elapsed, 0), d.Of(ttl))
	if used >= ttl {
		return 0
	}
	return ttl - used // 0 <= used < ttl, so this cannot overflow
}

// saturatingAdd adds b, which is not negative, to a.
func saturatingAdd(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}
