// The arithmetic, against big integers.

package clock

import (
	"math"
	"math/big"
	"testing"
	"time"
)

func TestSaturating(t *testing.T) {
	edges := []time.Duration{
		earliest, earliest + 1, earliest / 2, -2, -1, 0, 1, 2, latest / 2, latest/2 + 1, latest - 1, latest,
	}
	clamp := func(n *big.Int) time.Duration {
		switch {
		case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
			return latest
		case n.Cmp(big.NewInt(math.MinInt64)) < 0:
			return earliest
		}
		return time.Duration(n.Int64())
	}
	for _, a := range edges {
		for _, b := range edges {
			x, y := big.NewInt(int64(a)), big.NewInt(int64(b))
			if got, want := saturatingAdd(a, b), clamp(new(big.Int).Add(x, y)); got != want {
				t.Errorf("%d + %d = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestScale(t *testing.T) {
	for _, tt := range []struct {
		d            time.Duration
		rate         float64
		scaled, back time.Duration // d*rate, d/rate
	}{
		{0, 2, 0, 0},
		{10, 3, 30, 4},
		{10, 0.3, 3, 34},
		{latest, 1, latest, latest},
		{latest - 1, 1, latest - 1, latest - 1}, // exact, which floats are not
		{latest, 2, latest, 1 << 62},
		{1 << 62, 2, latest, 1 << 61}, // 1<<63 is just too much
		{latest, 0.5, 1 << 62, latest},
		{1, math.MaxFloat64, latest, 1},
		{1, math.SmallestNonzeroFloat64, 0, latest},
	} {
		if got := scale(tt.d, tt.rate); got != tt.scaled {
			t.Errorf("scale(%d, %v) = %d, want %d", tt.d, tt.rate, got, tt.scaled)
		}
		if got := unscale(tt.d, tt.rate); got != tt.back {
			t.Errorf("unscale(%d, %v) = %d, want %d", tt.d, tt.rate, got, tt.back)
		}
	}
}
