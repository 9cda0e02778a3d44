// Histories of the simulation, and a judge who knows nothing of it: Porcupine, which asks
// whether a lock, a source of tokens and a storage that each do one thing at a time could
// have had the same history.

package integration_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/sim"
)

// A judgement is a model, and what of a history it is about.
type judgement struct {
	name  string
	kinds []sim.OperationKind
	model porcupine.Model
}

var judgements = []judgement{
	{"tokens", []sim.OperationKind{sim.Acquire}, porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, _ any) (bool, any) {
			token := input.(sim.Operation).Token
			return token > state.(int64), token
		},
		DescribeOperation: describe,
	}},
	{"lease", []sim.OperationKind{sim.Acquire, sim.Release}, porcupine.Model{
		Init: func() any { return 0 }, // the lease that is held
		Step: func(state, input, _ any) (bool, any) {
			o, held := input.(sim.Operation), state.(int)
			if o.Kind == sim.Acquire {
				return held == 0, o.Lease
			}
			return held == o.Lease, 0
		},
		DescribeOperation: describe,
	}},
	{"storage", []sim.OperationKind{sim.Read, sim.Write}, porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, _ any) (bool, any) {
			o, r := input.(sim.Operation), state.(register)
			switch {
			case o.Stale || o.Token < r.highest:
				return o.Stale && o.Token < r.highest, r
			case o.Kind == sim.Read:
				return o.Value == r.value, register{o.Token, r.value}
			default:
				return true, register{o.Token, o.Value}
			}
		},
		DescribeOperation: describe,
	}},
}

// A register is what the storage has: the highest token it has seen, and a value.
type register struct {
	highest int64
	value   int
}

func describe(input, _ any) string {
	o := input.(sim.Operation)
	what := [...]string{"lock", "end of the lease", "read", "write"}[o.Kind]
	if o.Kind == sim.Read || o.Kind == sim.Write {
		what += fmt.Sprint(" ", o.Value)
	}
	if o.Stale {
		what += ", refused"
	}
	return fmt.Sprintf("%s, token %d", what, o.Token)
}

// judgeHistory asks all judges, and returns what they say.
func judgeHistory(t *testing.T, what string, history []sim.Operation, outside bool) (illegal []string) {
	t.Helper()
	for _, j := range judgements {
		if j.name == "lease" && outside {
			continue
		}
		names := map[string][]porcupine.Operation{}
		for _, o := range history {
			if slices.Contains(j.kinds, o.Kind) && (o.Token > 0 || j.name == "lease") {
				names[o.Name] = append(names[o.Name], porcupine.Operation{
					ClientId: o.Worker, Input: o, Output: o, Call: int64(o.Call), Return: int64(o.Return),
				})
			}
		}
		for name, operations := range names {
			result, info := porcupine.CheckOperationsVerbose(j.model, operations, time.Minute)
			if result == porcupine.Ok {
				continue
			}
			illegal = append(illegal, j.name)
			if result == porcupine.Unknown {
				t.Errorf("%s: %s of %q: no answer", what, j.name, name)
			}
			picture := filepath.Join(t.ArtifactDir(), strings.NewReplacer(" ", "_", "-sim.", "").Replace(what)+"_"+j.name+".html")
			if err := porcupine.VisualizePath(j.model, info, picture); err != nil {
				t.Error(err)
			}
			t.Logf("%s: %s of %q is not a history that could be: %s", what, j.name, name, picture)
		}
	}
	return illegal
}

func simulate(t *testing.T, spec sim.Spec) *sim.Result {
	t.Helper()
	var r *sim.Result
	synctest.Test(t, func(*testing.T) { r = sim.Run(spec) })
	return r
}

// TestSimulationHistories judges runs of all profiles. With -artifacts the picture of a
// history that cannot be is kept.
func TestSimulationHistories(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 5
	}
	judged := map[sim.OperationKind]int{}
	for _, p := range sim.Profiles {
		for seed := range seeds {
			spec := sim.Spec{Profile: p, Seed: uint64(1000000 + seed)}
			r := simulate(t, spec)
			if r.Violation != "" {
				t.Errorf("%s: %s", spec.Again(), r.Violation)
			}
			if illegal := judgeHistory(t, spec.Again(), r.History, p.Outside); len(illegal) > 0 {
				t.Errorf("%s: %q", spec.Again(), illegal)
			}
			for _, o := range r.History {
				judged[o.Kind]++
			}
		}
	}
	for kind := sim.Acquire; kind <= sim.Write; kind++ {
		if judged[kind] == 0 {
			t.Errorf("there was nothing to judge of the kind %d", kind)
		}
	}
	t.Logf("%d acquisitions, %d ends of leases, %d reads, %d writes", judged[sim.Acquire], judged[sim.Release], judged[sim.Read], judged[sim.Write])
}

// TestSimulationJudges is that they find what is wrong: two holders, where nothing was
// left for drift, and what was spoilt by hand.
func TestSimulationJudges(t *testing.T) {
	p, err := sim.ProfileOf("clocks")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for seed := uint64(0); !found; seed++ {
		if seed == 3000 {
			t.Fatal("no run has two holders")
		}
		spec := sim.Spec{Profile: p, Seed: seed, Options: []redlock.Option{redlock.WithDrift(redlock.Drift{})}}
		r := simulate(t, spec)
		if found = strings.Contains(r.Violation, "is granted to"); found && !slices.Contains(judgeHistory(t, spec.Again(), r.History, false), "lease") {
			t.Errorf("%s: %s, which Porcupine does not see", spec.Again(), r.Violation)
		}
	}

	var sound []sim.Operation
	for seed := uint64(0); len(sound) == 0; seed++ {
		if r := simulate(t, sim.Spec{Profile: sim.Profiles[0], Seed: seed}); r.Setting.Fenced && r.Setting.Names == 1 && r.Grants > 4 {
			sound = r.History
		}
	}
	for what, spoil := range map[string]func(h []sim.Operation){
		"tokens":  func(h []sim.Operation) { of(h, sim.Acquire, 3).Token = of(h, sim.Acquire, 1).Token },
		"lease":   func(h []sim.Operation) { end := of(h, sim.Release, 1); end.Call, end.Return = 1<<40, 1<<40 },
		"storage": func(h []sim.Operation) { of(h, sim.Read, 2).Value++ },
	} {
		h := slices.Clone(sound)
		spoil(h)
		if illegal := judgeHistory(t, "spoilt "+what, h, false); !slices.Contains(illegal, what) {
			t.Errorf("%s: Porcupine sees nothing, but %q", what, illegal)
		}
	}
}

// of returns the nth operation of a kind.
func of(h []sim.Operation, kind sim.OperationKind, n int) *sim.Operation {
	for i := range h {
		if h[i].Kind == kind {
			if n--; n < 0 {
				return &h[i]
			}
		}
	}
	panic("there are not so many")
}
