// Figures: right when measured, and the same when read back.

package result_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/internal/result"
)

// series records the whole numbers from 1 to n, in milliseconds.
func series(n int) *result.Series {
	s := new(result.Series)
	for i := range n {
		s.Record(time.Duration(i+1) * time.Millisecond)
	}
	return s
}

func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if math.Abs(float64(got-want)) > 0.002*float64(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestPercentiles(t *testing.T) {
	s := series(1000)
	for _, p := range []float64{50, 90, 99, 99.9, 100} {
		near(t, "percentile", s.At(p), time.Duration(p*10)*time.Millisecond)
	}
	var none result.Series
	if none.At(50) != 0 || none.Count() != 0 {
		t.Errorf("an empty series has %d calls, and a median of %v", none.Count(), none.At(50))
	}
	none.Record(-time.Second)
	none.Record(24 * time.Hour)
	if none.Count() != 2 || none.At(1) > time.Microsecond {
		t.Errorf("what is out of bounds is lost: %d calls", none.Count())
	}
}

func TestAdd(t *testing.T) {
	sum := series(500)
	other := new(result.Series)
	for i := 501; i <= 1000; i++ {
		other.Record(time.Duration(i) * time.Millisecond)
	}
	sum.Add(other)
	sum.Add(new(result.Series))
	near(t, "median of the sum", sum.At(50), 500*time.Millisecond)
	if sum.Count() != 1000 || other.Count() != 500 {
		t.Errorf("%d and %d calls", sum.Count(), other.Count())
	}
}

// cell has one round for each median in milliseconds; 0 is a round that was missed.
func cell(medians ...int) *result.Cell {
	c := &result.Cell{}
	for i, m := range medians {
		if m == 0 {
			continue
		}
		s := new(result.Series)
		s.Record(time.Duration(m) * time.Millisecond)
		c.Set(i, result.Round{Took: time.Second, Cycles: int64(m), Ops: map[string]*result.Series{"lock": s}})
	}
	return c
}

func TestRatios(t *testing.T) {
	for _, test := range []struct {
		name              string
		a, b              *result.Cell
		median, low, high float64
	}{
		{"same round by same round", cell(10, 40, 30), cell(20, 20, 20), 1.5, 0.5, 2},
		{"even number", cell(10, 30), cell(10, 10), 2, 1, 3},
		{"a missed round", cell(10, 0, 30), cell(10, 10, 10), 2, 1, 3},
		{"fewer rounds", cell(10, 20), cell(10), 1, 1, 1},
	} {
		latency, ok1 := test.a.LatencyRatio(test.b, "lock")
		throughput, ok2 := test.a.ThroughputRatio(test.b)
		for _, got := range []result.Ratio{latency, throughput} {
			for i, pair := range [][2]float64{{got.Median, test.median}, {got.Low, test.low}, {got.High, test.high}} {
				if math.Abs(pair[0]-pair[1]) > 0.01*pair[1] {
					t.Errorf("%s: figure %d is %v, want %v", test.name, i, pair[0], pair[1])
				}
			}
		}
		if !ok1 || !ok2 {
			t.Errorf("%s: there is no ratio", test.name)
		}
	}
	if _, ok := cell(1).LatencyRatio(nil, "lock"); ok {
		t.Error("a ratio to nothing")
	}
	if _, ok := cell(1, 0).LatencyRatio(cell(0, 1), "lock"); ok {
		t.Error("a ratio of two different rounds")
	}
	if _, ok := cell(1).LatencyRatio(cell(1), "unlock"); ok {
		t.Error("a ratio of what was not measured")
	}
}

func TestPerCycle(t *testing.T) {
	c := cell(4, 6) // ten cycles in two rounds of a second
	c.Rounds[0].Usage.Allocs, c.Rounds[1].Usage.Allocs = 10, 20
	if v, ok := c.PerCycle(func(u result.Usage) float64 { return float64(u.Allocs) }); !ok || v != 3 {
		t.Errorf("%v allocations for each cycle, want 3", v)
	}
	if _, ok := c.PerCycle(func(u result.Usage) float64 { return float64(u.Commands) }); ok {
		t.Error("commands were never counted")
	}
	if got := c.Throughput(); got != 5 {
		t.Errorf("%v cycles per second, want 5", got)
	}
}

func TestRoundTrip(t *testing.T) {
	wrote := &result.Result{
		Schema: result.Schema, Started: time.Now().UTC().Truncate(time.Second), Took: time.Minute, Interrupted: true,
		Args: []string{"-n=3"}, Setup: result.Setup{TTL: time.Second, Rounds: 2, Names: 1, Contention: 1},
		Machine: result.Machine{OS: "plan9", CPUs: 2}, Nodes: []result.Node{{Name: "a:1", Kind: "own", Dead: true}},
		Peers:    []result.Peer{{Name: "redsync", About: "<it>"}},
		Failures: []result.Failure{{Peer: "x", Cell: "lock", Round: 1, Error: "no"}}, Notes: []string{"a note"},
	}
	s := result.Situation{Kind: result.Lock, Callers: 3, Network: "5ms", RTT: 5 * time.Millisecond, Sweep: true}
	wrote.Cell("redsync", s).Set(1, result.Round{
		Took: time.Second, Cycles: 7, Errors: 1, FirstError: "late",
		Ops:   map[string]*result.Series{"lock": series(1000), "unlock": {}},
		Nodes: map[string]map[string]*result.Series{"a:1": {"lock": series(10)}},
		Usage: result.Usage{Allocs: 5, ClientCPU: time.Millisecond, Commands: 9},
	})
	var b bytes.Buffer
	if err := wrote.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	got, err := result.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	lock := got.Find("redsync", s).Op("lock")
	for _, p := range []float64{1, 50, 90, 99, 99.9, 100} {
		if want := series(1000).At(p); lock.At(p) != want {
			t.Errorf("percentile %v is %v when read back, was %v", p, lock.At(p), want)
		}
	}
	var again bytes.Buffer
	if err := got.Write(&again); err != nil || again.String() != text {
		t.Errorf("written again it is different (%v):\n%s\n%s", err, text, again.String())
	}
	got.Cells, wrote.Cells = nil, nil
	if !reflect.DeepEqual(got, wrote) {
		t.Errorf("read %+v, wrote %+v", got, wrote)
	}
	// The figures are there for those who do not know histograms.
	if !strings.Contains(text, `"p99_ns": 99`) || !strings.Contains(text, `"count": 1000`) {
		t.Errorf("no figures in %s", text)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "no result of a benchmark",
		"[]":                          "no result of a benchmark",
		`{}`:                          "schema 0",
		`{"schema":99}`:               "schema 99",
		`{"schema":1,"cells":[null]}`: "cell 0 is null",
		`{"schema":1,"cells":[{"rounds":[{"ops":{"lock":{"hdr":"AAAA"}}}]}]}`: "histogram",
	} {
		if _, err := result.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := json.Marshal(new(result.Series)); err != nil {
		t.Error(err)
	}
}

func TestNetworkName(t *testing.T) {
	ms := time.Millisecond
	for want, delays := range map[string][]time.Duration{
		"": nil, "5ms": {5 * ms, 5 * ms, 5 * ms}, "1ms,1ms,2ms": {ms, ms, 2 * ms},
	} {
		if got := result.NetworkName(delays); got != want {
			t.Errorf("%v is called %q, want %q", delays, got, want)
		}
	}
}
