// Workers stopped and killed at the worst moments: the fence makes up for it,
// and without it the same run bills twice.

package main

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestChaos(t *testing.T) {
	t.Parallel()
	testChaos(t)
}

// testChaos runs twice with one seed.
func testChaos(t *testing.T, args ...string) {
	if !canSuspend {
		t.Skip("no SIGSTOP")
	}
	args = append(args, "-chaos", "-seed", "7", "-ttl", "500ms", "-invoices", "40", "-work", "15ms")

	with := runProgram(t, nil, args...)
	with.wantExact(t, 40)
	again := regexp.MustCompile(`worker \d+ continued after [\d.]+ s: refused as stale, invoice \d+ was not billed again\n`)
	if n := len(again.FindAllString(with.stdout, -1)); n != chaosStops {
		t.Errorf("%d of %d stopped workers were refused", n, chaosStops)
	}
	if n := number(strings.Fields(with.row(t, "refused as stale"))[0]); n < chaosStops {
		t.Errorf("refused as stale: %v", n)
	}

	without := runProgram(t, nil, append(args, "-no-fence")...)
	twice, err := strconv.Atoi(without.row(t, "billed twice"))
	if err != nil || twice == 0 || without.code != exitFailed || without.stderr != "" {
		t.Errorf("without the fence: billed twice: %d, %v; exit code %d, standard error %q", twice, err, without.code, without.stderr)
	}
	if !strings.HasSuffix(without.stdout, "\nNOT every invoice was billed exactly once\n") || strings.Contains(without.stdout, "stale") {
		t.Error("without the fence: no verdict at the end, or a refusal")
	}
	double := without.find(t, `continued after [\d.]+ s: billed invoice (\d+) a second time\n`)
	without.find(t, `\ninvoice `+double[0]+` of \S+ was charged 2 times, by workers \d+ \d+\n`)

	if a, b := with.hits(t), without.hits(t); !reflect.DeepEqual(a, b) {
		t.Errorf("one seed, but with the fence it hit %v, without it %v", a, b)
	}
}

// hits returns what a run was struck by, by invoice, and wants all of it.
func (r result) hits(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`worker \d+ \(pid \d+\) (stopped|killed) (.*) invoice (\d+) of `).FindAllStringSubmatch(r.stdout, -1) {
		all[m[3]] = m[1] + " " + m[2]
	}
	want := []string{
		"killed before the unlock, having just committed",
		"killed in the middle of the charge for",
		"killed in the transaction, about to commit",
		"stopped between its last look at the lease and the commit of",
		"stopped between its last look at the lease and the commit of",
		"stopped between its last look at the lease and the commit of",
	}
	if got := slices.Sorted(maps.Values(all)); !slices.Equal(got, want) {
		t.Errorf("struck: %q, want %q", got, want)
	}
	return all
}

func TestWorstMoments(t *testing.T) {
	t.Parallel()
	for _, n := range []int{len(strikes), 240} {
		plan := worstMoments(n, 5)
		if !maps.Equal(plan, worstMoments(n, 5)) {
			t.Error("one seed, two plans")
		}
		if n > len(strikes) && maps.Equal(plan, worstMoments(n, 6)) {
			t.Error("two seeds, one plan")
		}
		if got, want := slices.Sorted(maps.Values(plan)), slices.Sorted(slices.Values(strikes)); !slices.Equal(got, want) {
			t.Errorf("%d invoices: %v, want %v", n, got, want)
		}
		for id := range plan {
			if id < 1 || id > int64(max(n/2, len(strikes))) {
				t.Errorf("%d invoices: strikes in %d", n, id)
			}
		}
	}
	stops := len(slices.DeleteFunc(slices.Clone(strikes), func(m moment) bool { return m != checked }))
	if stops != chaosStops {
		t.Errorf("%d stops, not %d", stops, chaosStops)
	}
}
