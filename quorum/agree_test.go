// Agree against a table, an oracle that tries every choice of values, and the
// words of its own comment.

package quorum_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/quorumlock/redlock/quorum"
)

func TestAgree(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []int64
		need   int
		number int64
		agreed bool
	}{
		{"nobody", nil, 2, 0, false},
		{"too few", []int64{7}, 2, 0, false},
		{"too few, though equal", []int64{7, 7}, 3, 0, false},
		{"need zero", []int64{7, 7}, 0, 0, false},
		{"need less than zero", []int64{7, 7}, -1, 0, false},
		{"need the least int", []int64{7, 7}, math.MinInt, 0, false},
		{"one of one", []int64{7}, 1, 7, true},
		{"one of two", []int64{7, 5}, 1, 5, true},

		{"two of two", []int64{7, 7}, 2, 7, true},
		{"two apart", []int64{7, 5}, 2, 7, false},
		{"two next to each other", []int64{6, 5}, 2, 6, false},
		{"low pair", []int64{9, 5, 5}, 2, 5, true},
		{"high pair", []int64{9, 5, 9}, 2, 9, true},
		{"three of three", []int64{5, 5, 5}, 2, 5, true},
		{"one far ahead", []int64{1 << 40, 5, 7}, 2, 7, false},
		{"one far behind", []int64{8, 1, 7}, 2, 7, false},
		{"need them all", []int64{8, 8, 7}, 3, 8, false},

		{"low three of five", []int64{5, 9, 5, 8, 5}, 3, 5, true},
		{"middle three of five", []int64{5, 7, 7, 8, 7}, 3, 7, true},
		{"high three of five", []int64{9, 5, 9, 8, 9}, 3, 9, true},
		{"two pairs are no three", []int64{5, 9, 5, 9, 7}, 3, 7, false},
		{"a high pair is no three", []int64{9, 6, 9, 5}, 3, 9, false},
		{"a low pair is no three", []int64{5, 5, 6, 9}, 3, 6, false},
		{"all apart", []int64{5, 9, 6, 8, 7}, 3, 7, false},

		// Not that a counter is ever one of these.
		{"zeros", []int64{0, 0, 7}, 2, 0, true},
		{"below zero", []int64{-3, 0, -5}, 2, -3, false},
		{"extremes", []int64{math.MinInt64, math.MaxInt64}, 2, math.MaxInt64, false},
	} {
		number, agreed := quorum.Agree(slices.Clone(tt.values), tt.need)
		if number != tt.number || agreed != tt.agreed {
			t.Errorf("%s: Agree(%v, %d) = %d, %t, want %d, %t",
				tt.name, tt.values, tt.need, number, agreed, tt.number, tt.agreed)
		}
	}
}

// choices calls f with each way to choose need of values.
func choices(values []int64, need int, f func(chosen []int64)) {
	var chosen []int64
	for set := range uint(1) << len(values) {
		if bits.OnesCount(set) != need {
			continue
		}
		chosen = chosen[:0]
		for i, v := range values {
			if set>>i&1 == 1 {
				chosen = append(chosen, v)
			}
		}
		f(chosen)
	}
}

// agreeOracle knows no order, only choices. A number is agreed upon if the values
// of some choice are all it; of several, the smallest will do. Else the choice
// that has to be raised least is the one whose largest value is the smallest.
func agreeOracle(values []int64, need int) (number int64, agreed bool) {
	if need <= 0 {
		return 0, false
	}
	least, found := int64(0), false
	choices(values, need, func(chosen []int64) {
		top := slices.Max(chosen)
		if slices.Min(chosen) == top && (!agreed || top < number) {
			number, agreed = top, true
		}
		if !found || top < least {
			least, found = top, true
		}
	})
	if agreed {
		return number, true
	}
	return least, false
}

// checkAgree compares Agree with the oracle, and with what its comment says.
func checkAgree(t *testing.T, values []int64, need int) {
	t.Helper()
	got := slices.Clone(values)
	number, agreed := quorum.Agree(got, need)
	if n, a := agreeOracle(values, need); number != n || agreed != a {
		t.Fatalf("Agree(%v, %d) = %d, %t, want %d, %t", values, need, number, agreed, n, a)
	}

	sorted, kept := slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(got))
	if !slices.Equal(sorted, kept) {
		t.Fatalf("Agree(%v, %d) has made them %v", values, need, got)
	}
	count := make(map[int64]int)
	most := 0
	for _, v := range values {
		count[v]++
		most = max(most, count[v])
	}
	switch {
	case need <= 0 || len(values) < need:
		if number != 0 || agreed {
			t.Fatalf("Agree(%v, %d) = %d, %t, want 0, false", values, need, number, agreed)
		}
	case agreed && count[number] < need:
		t.Fatalf("Agree(%v, %d) = %d, of which there are %d", values, need, number, count[number])
	case !agreed && most >= need:
		t.Fatalf("Agree(%v, %d) overlooks a number that there is %d times", values, need, most)
	case !agreed && number != sorted[need-1]:
		t.Fatalf("Agree(%v, %d) = %d, which is not number %d of %v", values, need, number, need, sorted)
	}
}

// TestAgreeOracle compares all values up to 3 of up to five nodes, in all orders,
// for every number that may have to agree.
func TestAgreeOracle(t *testing.T) {
	for nodes := range 6 {
		values := make([]int64, nodes)
		for pattern := range 1 << (2 * nodes) {
			for i := range values {
				values[i] = int64(pattern >> (2 * i) & 3)
			}
			for need := -1; need <= nodes+1; need++ {
				checkAgree(t, values, need)
			}
		}
	}
}

// TestAgreeRaised: when the values below the number have been raised to it, need
// of them agree on it, whatever the others are. And no smaller number would do.
func TestAgreeRaised(t *testing.T) {
	values := []int64{5, 9, 6, 1 << 40, 8}
	for need := 2; need <= len(values); need++ {
		target, agreed := quorum.Agree(slices.Clone(values), need)
		if agreed {
			t.Fatalf("%v agree on %d", values, target)
		}
		for _, number := range []int64{target - 1, target} {
			raised := slices.Clone(values)
			for i := range raised {
				raised[i] = max(raised[i], number)
			}
			if got, agreed := quorum.Agree(raised, need); agreed != (number == target) || agreed && got != target {
				t.Errorf("%v, raised to %d: %d of them agree on %d: %t", values, number, need, got, agreed)
			}
		}
	}
}

// TestAgreeAllocs: it is called for every answer of every lock.
func TestAgreeAllocs(t *testing.T) {
	values := []int64{5, 9, 6, 7, 8}
	if n := testing.AllocsPerRun(100, func() { quorum.Agree(values, 3) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzAgree extends the comparison to more values, close together and not.
func FuzzAgree(f *testing.F) {
	f.Add([]byte{5, 5, 5}, int8(2), int64(1))
	f.Add([]byte{5, 9, 6, 8, 7}, int8(3), int64(1))
	f.Add([]byte{1, 2, 1, 2, 255}, int8(3), int64(math.MaxInt64/255))
	f.Add([]byte{}, int8(0), int64(-1))
	f.Fuzz(func(t *testing.T, numbers []byte, need int8, scale int64) {
		values := make([]int64, min(len(numbers), 10))
		for i := range values {
			values[i] = int64(numbers[i]) * scale // and around, which does no harm
		}
		checkAgree(t, values, int(need)%(len(values)+2))
	})
}
