package sim_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/sim"
)

// finds looks for a violation among many seeds, and shows the smallest run of it.
func finds(t *testing.T, what string, spec sim.Spec) {
	t.Helper()
	const most = 3000
	for seed := range uint64(most) {
		spec.Seed = seed
		if r := run(t, spec); !strings.Contains(r.Violation, what) {
			continue
		}
		spec = sim.Shrink(spec, func(s sim.Spec) *sim.Result { return run(t, s) })
		spec.Tell = true
		r := run(t, spec)
		t.Logf("found by seed %d; with %d of its faults:\n%v\n%s", seed, len(spec.Keep), &r.Setting, r.Tale)
		return
	}
	t.Errorf("%d runs have found no %q", most, what)
}

// TestFindsDrift is that the simulation finds two holders if nothing is left for drift.
func TestFindsDrift(t *testing.T) {
	p := *profileOf(t, "clocks")
	finds(t, "holds it", sim.Spec{Profile: &p, Options: []redlock.Option{redlock.WithDrift(redlock.Drift{})}})
}

// TestFindsNoGuard is that it finds two holders if nodes that have lost their data vote.
func TestFindsNoGuard(t *testing.T) {
	p := *profileOf(t, "crashes")
	p.Guarded = false
	finds(t, "holds it", sim.Spec{Profile: &p})
}

// TestFindsAtLeast is that it finds a token that was given twice if a node confirms a
// token by a counter that is at least as high, and not equal.
func TestFindsAtLeast(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the library once more")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(root, "quorum", "agree.go")
	source, err := os.ReadFile(real)
	if err != nil {
		t.Fatal(err)
	}
	const rule, wrong = "values[i] == values[i-need+1]", "values[i] >= values[i-need+1]"
	if strings.Count(string(source), rule) != 1 {
		t.Fatalf("%s has no %q to be changed", real, rule)
	}
	fake := filepath.Join(t.TempDir(), "agree.go")
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{real: fake}})
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{fake: []byte(strings.Replace(string(source), rule, wrong, 1)), overlay: replace} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-vet=off", "-count=1",
		"-run", "^TestSeeds$", ".", "-sim.seeds", "300", "-sim.profile", "network")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is granted twice with the token") {
		t.Errorf("%v\n%s", err, out)
	}
}

func profileOf(t *testing.T, name string) *sim.Profile {
	t.Helper()
	p, err := sim.ProfileOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
