// Package chart draws plots as SVG, without any file besides. It knows lines and
// ranges, on linear and logarithmic axes.
package chart

import (
	"math"
	"strconv"
	"time"
)

// An Axis is how numbers become places.
type Axis struct {
	Label  string
	Log    bool
	Format func(float64) string // of a tick; nil for plain numbers
	Ticks  []float64            // nil: round numbers are chosen
}

// A scale maps low..high to from..to.
type scale struct {
	axis           Axis
	low, high      float64
	from, to       float64
	lowLog, logLen float64
}

// newScale covers all values. A linear scale begins at zero.
func newScale(axis Axis, values []float64, from, to float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if axis.Log && v <= 0 {
			continue // has no place there
		}
		low, high = min(low, v), max(high, v)
	}
	if math.IsInf(low, 1) {
		low, high = 1, 10
	}
	s := scale{axis: axis, from: from, to: to}
	if axis.Log {
		s.low, s.high = low/1.15, high*1.15
		s.lowLog = math.Log(s.low)
		s.logLen = math.Log(s.high) - s.lowLog
		return s
	}
	s.low, s.high = min(low, 0), high*1.06
	if s.high <= s.low {
		s.high = s.low + 1
	}
	return s
}

func (s scale) at(v float64) float64 {
	part := (v - s.low) / (s.high - s.low)
	if s.axis.Log {
		part = (math.Log(max(v, s.low)) - s.lowLog) / s.logLen
	}
	return s.from + part*(s.to-s.from)
}

// ticks are the numbers that the axis shows.
func (s scale) ticks() []float64 {
	if s.axis.Ticks != nil {
		return s.axis.Ticks
	}
	if s.axis.Log {
		return s.logTicks()
	}
	const about = 5
	step := nice((s.high - s.low) / about)
	var all []float64
	for i := math.Ceil(s.low / step); i*step <= s.high; i++ {
		all = append(all, i*step)
	}
	return all
}

// logTicks are 1, 2 and 5 of each power of ten: the powers alone if there are many,
// and more between them if there are few.
func (s scale) logTicks() []float64 {
	steps := []float64{1, 2, 5}
	if s.high/s.low > 2000 {
		steps = []float64{1}
	}
	if s.high/s.low < 5 {
		steps = []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}
	}
	var all []float64
	for power := math.Pow(10, math.Floor(math.Log10(s.low))); power <= s.high; power *= 10 {
		for _, step := range steps {
			if v := step * power; v >= s.low && v <= s.high {
				all = append(all, v)
			}
		}
	}
	return all
}

// nice rounds up to 1, 2 or 5 times a power of ten.
func nice(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

func (s scale) text(v float64) string {
	if s.axis.Format != nil {
		return s.axis.Format(v)
	}
	return Number(v)
}

// Number is how plain numbers are written on axes.
func Number(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Millis is how times are written on axes: v is in milliseconds.
func Millis(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1:
		return strconv.FormatFloat(v*1000, 'g', 3, 64) + " µs"
	case v < 1000:
		return strconv.FormatFloat(v, 'g', 3, 64) + " ms"
	}
	return strconv.FormatFloat(v/1000, 'g', 3, 64) + " s"
}

// InMillis is d as the plots take it.
func InMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
