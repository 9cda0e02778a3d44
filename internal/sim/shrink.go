// Making a run that goes wrong small.

package sim

import "slices"

// Shrink returns the run that s is, with as few faults as it takes for it to go wrong,
// as run finds. It takes out halves first and ends with single faults, as in the delta
// debugging of Zeller and Hildebrandt (2002).
func Shrink(s Spec, run func(Spec) *Result) Spec {
	first := run(s)
	var keep []int
	for _, f := range first.Faults {
		keep = append(keep, f.Number)
	}
	wrong := func(keep []int) bool {
		s.Keep = keep
		return run(s).Violation != ""
	}
	if wrong([]int{}) {
		s.Keep = []int{}
		return s
	}
	for part := max(len(keep)/2, 1); ; {
		smaller := false
		for i := 0; i < len(keep); {
			rest := slices.Concat(keep[:i], keep[min(i+part, len(keep)):])
			if len(rest) < len(keep) && wrong(rest) {
				keep, smaller = rest, true
			} else {
				i += part
			}
		}
		if part == 1 && !smaller {
			s.Keep = keep
			return s
		}
		part = max(part/2, 1)
	}
}
