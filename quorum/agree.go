// Agree: one number out of those that the nodes counted.

package quorum

import "slices"

// Agree looks for a number that need of values have in common, and returns it
// and true. If there is none it returns the number that the rest should be
// raised to: the need-th smallest.
//
// That is the smallest number that need of them can reach without any of them
// going back. The largest would do as well if all counters were sound, but it
// lets a single node that has run ahead drag the others with it, or stop them.
//
// With fewer than need values there is nothing to agree on, and it returns zero.
// It reorders values.
func Agree(values []int64, need int) (number int64, agreed bool) {
	if need <= 0 || len(values) < need {
		return 0, false
	}
	slices.Sort(values)
	for i := need - 1; i < len(values); i++ {
		if values[i] == values[i-need+1] {
			return values[i], true
		}
	}
	return values[need-1], false
}
