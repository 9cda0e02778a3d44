// Validity against arithmetic without limits.

package redlock_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

const forever = time.Duration(math.MaxInt64)

func drift(factor float64, floor time.Duration) redlock.Drift {
	return redlock.Drift{Factor: factor, Floor: floor}
}

// standard is the default drift.
var standard = drift(0.01, 2*time.Millisecond)

func TestValidity(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name         string
		drift        redlock.Drift
		ttl, elapsed time.Duration
		want         time.Duration
	}{
		{"the default TTL", standard, 10 * time.Second, 0, 9898 * ms},
		{"the specification's TTL", standard, 30 * time.Second, 0, 29698 * ms},
		{"some time has passed", standard, 10 * time.Second, 1 * time.Second, 8898 * ms},
		{"to the nanosecond", standard, 10 * time.Second, 1, 9898*ms - 1},
		{"a nanosecond is left", standard, 10 * time.Second, 9898*ms - 1, 1},
		{"nothing is left", standard, 10 * time.Second, 9898 * ms, 0},
		{"less than nothing is left", standard, 10 * time.Second, 11 * time.Second, 0},
		{"the shortest TTL", standard, 10 * ms, 0, 7900 * time.Microsecond},
		{"the longest TTL", standard, 24 * time.Hour, 0, 24*time.Hour - 864*time.Second - 2*ms},
		{"no drift", drift(0, 0), time.Second, 300 * ms, 700 * ms},
		{"a floor alone", drift(0, 5*ms), time.Second, 0, 995 * ms},
		{"a factor alone", drift(0.1, 0), time.Second, 0, 900 * ms},
		{"a floor that eats the TTL", drift(0, time.Second), time.Second, 0, 0},
		{"a factor that eats the TTL", drift(1, 0), time.Second, 0, 0},

		// One part per billion of a second is a nanosecond. What is below is
		// rounded up, both in the factor and in the product.
		{"one part per billion", drift(1e-9, 0), time.Second, 0, time.Second - 1},
		{"less than one part per billion", drift(1e-12, 0), time.Second, 0, time.Second - 1},
		{"a part of a nanosecond", drift(1e-9, 0), 10 * ms, 0, 10*ms - 1},
		{"a nanosecond and a part", drift(1e-9, 0), time.Second + ms, 0, time.Second + ms - 2},
		{"the smallest factor that there is", drift(math.SmallestNonzeroFloat64, 0), time.Hour, 0, time.Hour - 3600},

		// What New refuses errs on the safe side all the same.
		{"a factor of NaN", drift(math.NaN(), 0), time.Second, 0, 0},
		{"an infinite factor", drift(math.Inf(1), 0), time.Second, 0, 0},
		{"a huge factor", drift(1e300, 0), time.Second, 0, 0},
		{"a negative factor", drift(-0.5, 0), time.Second, 0, time.Second},
		{"an infinite negative factor", drift(math.Inf(-1), 0), time.Second, 0, time.Second},
		{"a negative floor", drift(0.01, -time.Hour), time.Second, 0, 990 * ms},
		{"the largest floor", drift(0.01, forever), time.Second, 0, 0},
		{"a clock that went back", standard, 10 * time.Second, -time.Hour, 9898 * ms},
		{"as far back as it can", standard, 10 * time.Second, math.MinInt64, 9898 * ms},
		{"as far ahead as it can", standard, 10 * time.Second, forever, 0},
		{"no TTL", standard, 0, 0, 0},
		{"a negative TTL", standard, -time.Second, 0, 0},
		{"a negative TTL and no drift", drift(0, 0), math.MinInt64, 0, 0},
		{"the largest TTL", drift(0, 0), forever, 0, forever},
		{"the largest of everything", drift(1, forever), forever, forever, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.drift.Validity(c.ttl, c.elapsed); got != c.want {
				t.Errorf("Validity(%v, %v) with %+v = %v, want %v", c.ttl, c.elapsed, c.drift, got, c.want)
			}
			if err := checkValidity(c.drift, c.ttl, c.elapsed); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDriftOf(t *testing.T) {
	for _, c := range []struct {
		drift redlock.Drift
		ttl   time.Duration
		want  time.Duration
	}{
		{standard, 10 * time.Second, 102 * time.Millisecond},
		{standard, 0, 2 * time.Millisecond},
		{standard, -time.Second, 2 * time.Millisecond},
		{drift(0.5, 0), forever, forever/2 + 1},
		{drift(0.5, forever), forever, forever},
		{drift(math.NaN(), 0), forever, forever},
		{drift(math.Inf(1), 1), forever, forever},
		{drift(-1, -1), forever, 0},
	} {
		if got := c.drift.Of(c.ttl); got != c.want {
			t.Errorf("%+v.Of(%v) = %v, want %v", c.drift, c.ttl, got, c.want)
		}
	}
}

// exactDrift is Drift.Of without bounds. Factor counts in whole parts per
// billion, rounded up, as its documentation says; the product with a billion is
// that of the float format, in which 0.01 is a hundredth.
func exactDrift(d redlock.Drift, ttl time.Duration) *big.Int {
	const billion = 1_000_000_000
	ppb := big.NewInt(billion) // for what is not a factor below 1
	switch f := d.Factor; {
	case math.IsNaN(f), f >= 1:
	case f <= 0:
		ppb.SetInt64(0)
	default:
		product := new(big.Float).SetPrec(53).Mul(big.NewFloat(f), big.NewFloat(billion))
		whole, accuracy := product.Int(nil)
		if accuracy == big.Below {
			whole.Add(whole, big.NewInt(1))
		}
		ppb.Set(whole)
	}
	sum := ppb.Mul(ppb, big.NewInt(int64(max(ttl, 0))))
	sum.Add(sum, big.NewInt(billion-1)).Div(sum, big.NewInt(billion))
	return sum.Add(sum, big.NewInt(int64(max(d.Floor, 0))))
}

// checkValidity compares one result with the oracle, and with its neighbours.
func checkValidity(d redlock.Drift, ttl, elapsed time.Duration) error {
	got := d.Validity(ttl, elapsed)

	want := big.NewInt(int64(ttl))
	want.Sub(want, big.NewInt(int64(max(elapsed, 0)))).Sub(want, exactDrift(d, ttl))
	if want.Sign() < 0 {
		want.SetInt64(0)
	}
	fault := func(format string, args ...any) error {
		return fmt.Errorf("Validity(%d, %d) with %+v = %d: %s", ttl, elapsed, d, got, fmt.Sprintf(format, args...))
	}
	switch {
	case want.Cmp(big.NewInt(int64(got))) != 0:
		return fault("want %v", want)
	case got < 0 || got > max(ttl, 0):
		return fault("not within the TTL")
	}

	// More time passed, or more drift, never leaves more.
	if elapsed < forever {
		if more := d.Validity(ttl, elapsed+1); more > got || got-more > 1 {
			return fault("a nanosecond later it is %d", more)
		}
	}
	for _, wider := range []redlock.Drift{
		drift(d.Factor, max(d.Floor, d.Floor+1)),
		drift(math.Nextafter(d.Factor, math.Inf(1)), d.Floor),
		drift(d.Factor+1e-9, d.Floor),
		drift(max(2*d.Factor, d.Factor), d.Floor),
	} {
		if more := wider.Validity(ttl, elapsed); more > got {
			return fault("with %+v it is %d", wider, more)
		}
	}
	return nil
}

// edges are the values at which integer arithmetic goes wrong.
var edges = []int64{
	math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 999_999_999, 1_000_000_000, 1_000_000_001,
	math.MaxInt64 / 1_000_000_000, math.MaxInt64/1_000_000_000 + 1, math.MaxInt32, math.MaxUint32,
	math.MaxInt64 / 2, math.MaxInt64/2 + 1, math.MaxInt64 - 1, math.MaxInt64,
}

var edgeFactors = []float64{
	math.NaN(), math.Inf(-1), -1, math.Copysign(0, -1), 0, math.SmallestNonzeroFloat64, 1e-10, 1e-9,
	0.01, 0.1, 1.0 / 3, 0.5, 0.999999999, math.Nextafter(1, 0), 1, math.Nextafter(1, 2), 2, math.MaxFloat64, math.Inf(1),
}

func TestValidityAtEdges(t *testing.T) {
	for _, factor := range edgeFactors {
		for _, floor := range edges {
			for _, ttl := range edges {
				for _, elapsed := range edges {
					if err := checkValidity(drift(factor, time.Duration(floor)), time.Duration(ttl), time.Duration(elapsed)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// TestValidityRandom looks at values as they are in use.
func TestValidityRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		ttl := time.Duration(rng.Int64N(int64(24 * time.Hour)))
		d := drift(rng.Float64()*math.Pow(10, -float64(rng.IntN(12))), time.Duration(rng.Int64N(int64(time.Second))))
		if err := checkValidity(d, ttl, time.Duration(rng.Int64N(int64(ttl)+1))); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzValidity(f *testing.F) {
	for _, factor := range edgeFactors {
		f.Add(factor, int64(2*time.Millisecond), int64(10*time.Second), int64(0))
	}
	for _, edge := range edges {
		f.Add(0.01, edge, edge, edge)
	}
	f.Fuzz(func(t *testing.T, factor float64, floor, ttl, elapsed int64) {
		if err := checkValidity(drift(factor, time.Duration(floor)), time.Duration(ttl), time.Duration(elapsed)); err != nil {
			t.Fatal(err)
		}
	})
}
