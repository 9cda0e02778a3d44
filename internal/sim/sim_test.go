package sim_test

import (
	"flag"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
)

var (
	seeds   = flag.Int("sim.seeds", 0, "how many `seeds` to run; 0 for 1,000, or 210 with -short")
	from    = flag.Uint64("sim.from", 0, "the first `seed`")
	same    = flag.Uint64("sim.same", 10, "`seeds` of each profile for TestSame")
	only    = flag.Int64("sim.seed", -1, "run this `seed` alone, and tell what happens")
	profile = flag.String("sim.profile", "", "run this `profile` alone")
	keep    = flag.String("sim.faults", "", "with -sim.seed: only these `faults` of the schedule take place, as 0,3,5 or none")
)

var runs int

// run makes one run in a bubble.
func run(t *testing.T, spec sim.Spec) *sim.Result {
	t.Helper()
	var r *sim.Result
	if runs++; runs%16 == 0 {
		runtime.GC()
	}
	synctest.Test(t, func(*testing.T) { r = sim.Run(spec) })
	return r
}

func TestMain(m *testing.M) {
	// One at a time: that is what makes a run the same each time, and quicker.
	// The collector would change the order of goroutines.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	m.Run()
}

// TestSeeds runs seeds of all profiles in turn.
func TestSeeds(t *testing.T) {
	profiles := sim.Profiles
	if *profile != "" {
		p, err := sim.ProfileOf(*profile)
		if err != nil {
			t.Fatal(err)
		}
		profiles = []*sim.Profile{p}
	}
	if *only >= 0 {
		spec := sim.Spec{Profile: profiles[0], Seed: uint64(*only), Tell: true, Keep: kept(t)}
		r := run(t, spec)
		t.Logf("%v\n%s", &r.Setting, r.Tale)
		if r.Violation != "" {
			t.Error(r.Violation)
		}
		return
	}
	n := *seeds
	switch {
	case n > 0:
	case race:
		n = 70
	case testing.Short():
		n = 210
	default:
		n = 1000
	}
	start := time.Now()
	grants, messages := 0, 0
	for i := range n {
		spec := sim.Spec{Profile: profiles[i%len(profiles)], Seed: *from + uint64(i)}
		r := run(t, spec)
		grants, messages = grants+r.Grants, messages+r.Messages
		if r.Violation != "" {
			explain(t, spec, r)
		}
	}
	took := time.Since(start)
	t.Logf("%d runs, %d grants, %d messages, %.0f runs a second", n, grants, messages, float64(n)/took.Seconds())
}

// explain fails the test with the smallest run that goes wrong in this way or another.
func explain(t *testing.T, spec sim.Spec, r *sim.Result) {
	t.Helper()
	t.Errorf("%s: %s", spec.Again(), r.Violation)
	spec = sim.Shrink(spec, func(s sim.Spec) *sim.Result { return run(t, s) })
	spec.Tell = true
	r = run(t, spec)
	t.Logf("with %d faults, %s:\n%v\n%s", len(spec.Keep), spec.Again(), &r.Setting, r.Tale)
}

func kept(t *testing.T) []int {
	t.Helper()
	if *keep == "" {
		return nil
	}
	faults := []int{}
	for s := range strings.SplitSeq(*keep, ",") {
		if s == "none" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("-sim.faults: %v", err)
		}
		faults = append(faults, n)
	}
	return faults
}

// TestSame is that one seed is one run. Goroutines that wake in the same nanosecond run in
// an order that Go does not promise, and in one run of some hundred that shows.
func TestSame(t *testing.T) {
	if race {
		t.Skip("the race detector changes the order of goroutines on purpose")
	}
	other := 0
	for _, p := range sim.Profiles {
		for seed := range *same {
			spec := sim.Spec{Profile: p, Seed: seed}
			a := run(t, spec)
			spec.Tell = true
			b := run(t, spec)
			if a.Grants == 0 {
				t.Errorf("%s: nobody has got a lock", spec.Again())
			}
			if a.Digest != b.Digest || a.Messages != b.Messages {
				t.Logf("%s: %d grants and %d messages, then %d and %d", spec.Again(), a.Grants, a.Messages, b.Grants, b.Messages)
				other++
			}
		}
	}
	if all := len(sim.Profiles) * int(*same); other > all/20 {
		t.Errorf("%d of %d runs were another the second time", other, all)
	}
}
