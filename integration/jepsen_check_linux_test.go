// What is wrong with a history of the Jepsen tests, and that it is found. The
// judges of the tokens are those of the fencing storm.

package integration_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// readHolds reads what the clients of one place have written: of each hold the last.
func readHolds(t *testing.T, path string) []hold {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := make(map[int64]hold)
	for line := range bytes.Lines(text) {
		var h hold
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		last[h.ID] = h
	}
	var holds []hold
	for _, h := range last {
		holds = append(holds, h)
	}
	return holds
}

// byName returns the holds of each name, in the order in which they were granted.
func byName(history []hold) map[string][]hold {
	names := make(map[string][]hold)
	for _, h := range slices.SortedFunc(slices.Values(history), func(a, b hold) int { return cmp.Compare(a.Ret, b.Ret) }) {
		names[h.Name] = append(names[h.Name], h)
	}
	return names
}

// acquisitions is what the judges of tokens want of a history.
func acquisitions(holds []hold) []acquisition {
	var list []acquisition
	for _, h := range holds {
		list = append(list, acquisition{process: int(h.ID >> 32), call: h.Call, ret: h.Ret, token: h.Token})
	}
	return list
}

// overlaps returns the holds of one name that began while another one was still
// held for certain: its holder asked later, and was told that it holds the lock.
func overlaps(history []hold) (pairs [][2]hold) {
	for _, holds := range byName(history) {
		var longest hold
		for _, h := range holds {
			if h.Until < h.Ret {
				continue // at no moment is it known to have held
			}
			if h.Ret < longest.Until {
				pairs = append(pairs, [2]hold{longest, h})
			}
			if h.Until > longest.Until {
				longest = h
			}
		}
	}
	return pairs
}

// A damage is what is wrong with a set.
type damage struct {
	lost    []int64 // acknowledged, and not there
	doubled []int64
	strange []int64 // that no holder can have added
}

func (d damage) none() bool { return len(d.lost)+len(d.doubled)+len(d.strange) == 0 }

// damaged compares a set with what the holders know. A write that was not
// acknowledged may be in it or not.
func damaged(set []int64, holds []hold, acknowledged func(hold) bool) (d damage) {
	times := make(map[int64]int)
	for _, id := range set {
		if times[id]++; times[id] == 2 {
			d.doubled = append(d.doubled, id)
		}
	}
	known := make(map[int64]bool)
	for _, h := range holds {
		known[h.ID] = true
		if acknowledged(h) && times[h.ID] == 0 {
			d.lost = append(d.lost, h.ID)
		}
	}
	for id := range times {
		if !known[id] {
			d.strange = append(d.strange, id)
		}
	}
	return d
}

func accepted(h hold) bool { return h.Accepted }
func written(h hold) bool  { return h.Written }

// judge checks what holds even if exclusion does not: the order of the tokens, and
// the fenced sets. It returns how many updates the plain ones have lost.
func (j *jepsen) judge(history []hold) (lost int) {
	j.Helper()
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	for name, holds := range byName(history) {
		judge(j.T, acquisitions(holds))
		if d := damaged(j.store.fenced[name], holds, accepted); !d.none() {
			j.Errorf("the fenced set of %s: %+v", name, d)
		}
		tokens := j.store.accepted[name]
		if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) < len(tokens) {
			j.Errorf("fenced writes of %s were accepted in this order: %v", name, tokens)
		}
		lost += len(damaged(j.store.plain[name], holds, written).lost)
	}
	j.Logf("%d tokens; %d updates lost by the plain sets; %d holds overlapped", len(history), lost, len(overlaps(history)))
	return lost
}

// judgeExclusion checks that one at a time holds a lock, and that its writes count.
func (j *jepsen) judgeExclusion(history []hold) {
	j.Helper()
	if pairs := overlaps(history); len(pairs) > 0 {
		j.Errorf("%d holds overlapped, first these: %+v", len(pairs), pairs[0])
	}
	for _, h := range history {
		if h.Refused {
			j.Errorf("the fenced set refused a write of a holder: %+v", h)
		}
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	for _, v := range j.store.sinners {
		j.Errorf("client %d wrote under token %d after it had slept for longer than the TTL", v.Client, v.Token)
	}
}

// controls spoils the history of a run that was sound, which must be found.
func (j *jepsen) controls(history []hold) {
	j.Helper()
	var holds []hold // of the name with the most
	for _, h := range byName(history) {
		if len(h) > len(holds) {
			holds = h
		}
	}
	h := acquisitions(holds)
	first, last := earliest(h), latest(h)
	bites(j.T, "a token reversed", h, func(h []acquisition) { h[first].token, h[last].token = h[last].token, h[first].token })
	bites(j.T, "a token given twice", h, func(h []acquisition) { h[last].token = h[first].token })

	known := slices.DeleteFunc(slices.Clone(holds), func(h hold) bool { return h.Until < h.Ret })
	known[0].Until = known[1].Ret + 1
	if len(overlaps(known)) == 0 {
		j.Error("two holds that overlap are not found")
	}
	j.store.mu.Lock()
	set := j.store.fenced[holds[0].Name]
	j.store.mu.Unlock()
	if d := damaged(set[1:], holds, func(h hold) bool { return h.ID == set[0] }); len(d.lost) != 1 {
		j.Errorf("an update that is lost is not found: %+v", d)
	}
	if d := damaged(append(slices.Clone(set), set[0]), holds, accepted); len(d.doubled) != 1 {
		j.Errorf("an update that is there twice is not found: %+v", d)
	}
}

// TestJepsenJudges: on histories small enough to be judged by eye.
func TestJepsenJudges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		history []hold
		want    int
	}{
		"one after the other":       {[]hold{{Ret: 1, Until: 3}, {Ret: 4, Until: 6}}, 0},
		"touching":                  {[]hold{{Ret: 1, Until: 3}, {Ret: 3, Until: 6}}, 0},
		"overlapping":               {[]hold{{Ret: 1, Until: 4}, {Ret: 3, Until: 6}}, 1},
		"the first written last":    {[]hold{{Ret: 3, Until: 6}, {Ret: 1, Until: 4}}, 1},
		"one around two":            {[]hold{{Ret: 1, Until: 9}, {Ret: 2, Until: 3}, {Ret: 4, Until: 5}}, 2},
		"other names":               {[]hold{{Name: "a", Ret: 1, Until: 9}, {Name: "b", Ret: 2, Until: 3}}, 0},
		"over before it was known":  {[]hold{{Ret: 1, Until: 9}, {Ret: 2, Lost: true}}, 0},
		"the end is never known":    {[]hold{{Ret: 1}, {Ret: 2, Until: 3}}, 0},
		"known to the last but one": {[]hold{{Ret: 1, Until: 4, Lost: true}, {Ret: 3, Until: 6}}, 1},
	} {
		if pairs := overlaps(c.history); len(pairs) != c.want {
			t.Errorf("%s: %d overlaps, want %d: %v", name, len(pairs), c.want, pairs)
		}
	}

	holds := []hold{{ID: 1, Accepted: true}, {ID: 2}, {ID: 3, Accepted: true}}
	for name, c := range map[string]struct {
		set  []int64
		want damage
	}{
		"all there":              {[]int64{1, 2, 3}, damage{}},
		"without what failed":    {[]int64{1, 3}, damage{}},
		"a lost update":          {[]int64{1, 2}, damage{lost: []int64{3}}},
		"one twice":              {[]int64{1, 3, 1}, damage{doubled: []int64{1}}},
		"one out of nowhere":     {[]int64{1, 3, 4}, damage{strange: []int64{4}}},
		"all at once":            {[]int64{2, 2, 4, 1}, damage{lost: []int64{3}, doubled: []int64{2}, strange: []int64{4}}},
		"nothing is left of all": {nil, damage{lost: []int64{1, 3}}},
	} {
		if d := damaged(c.set, holds, accepted); !slices.Equal(d.lost, c.want.lost) || !slices.Equal(d.doubled, c.want.doubled) || !slices.Equal(d.strange, c.want.strange) {
			t.Errorf("%s: %+v, want %+v", name, d, c.want)
		}
	}
}
