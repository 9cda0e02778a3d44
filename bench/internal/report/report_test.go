// The page holds every plot and table, and needs nothing else; the table says what
// went wrong.

package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/quorumlock/redlock/bench/internal/report"
	"github.com/quorumlock/redlock/bench/internal/result"
)

var plots = []string{"latency", "latency-busy", "throughput", "delay", "handover", "extend", "nodes"}

// full has figures for every plot. One peer has a name that is no HTML.
func full() *result.Result {
	r := &result.Result{
		Schema: result.Schema, Started: time.Unix(0, 0), Args: []string{"-redis=redis://u:xxxxx@<host>:1"},
		Setup: result.Setup{TTL: time.Second, Rounds: 2, Duration: time.Second, Contention: 1, Names: 1},
		Nodes: []result.Node{{Name: "a:1", Kind: "own", Version: "7.0"}, {Name: "b:1", Kind: "own"}},
		Peers: []result.Peer{{Name: "redlock"}, {Name: "redsync"}, {Name: "<script>x</script>"}},
		Notes: []string{"a <note>"},
	}
	ms := time.Millisecond
	for i, p := range r.Peers {
		for _, s := range []result.Situation{
			{Kind: result.Lock, Callers: 1},
			{Kind: result.Lock, Callers: 16},
			{Kind: result.Extend, Callers: 1},
			{Kind: result.HandOver, Callers: 2},
			{Kind: result.PerNode, Callers: 1},
			{Kind: result.Lock, Callers: 1, Network: "0s", Sweep: true},
			{Kind: result.Lock, Callers: 1, Network: "5ms", RTT: 5 * ms, Sweep: true},
		} {
			for round := range 2 {
				times := new(result.Series)
				for n := range 100 {
					times.Record(time.Duration(i+1) * time.Duration(n+1) * ms)
				}
				r.Cell(p.Name, s).Set(round, result.Round{
					Took: time.Second, Cycles: 100,
					Ops:   map[string]*result.Series{"lock": times, "unlock": times, "cycle": times, "extend": times, "handover": times},
					Nodes: map[string]map[string]*result.Series{"a:1": {"lock": times, "unlock": times}},
					Usage: result.Usage{Allocs: 100, ClientCPU: time.Second},
				})
			}
		}
	}
	return r
}

// page parses the page of r, and returns its figures by ID.
func page(t *testing.T, r *result.Result) (root *html.Node, figures map[string]*html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	figures = make(map[string]*html.Node)
	for n := range root.Descendants() {
		if n.Data == "figure" {
			figures[attr(n, "id")] = n
		}
		if n.Data == "script" || n.Data == "link" || n.Data == "img" || attr(n, "src") != "" || attr(n, "href") != "" {
			t.Errorf("the page needs more than itself, or runs a script: <%s>", n.Data)
		}
	}
	return root, figures
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, element string) bool {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == element {
			return true
		}
	}
	return false
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func TestPage(t *testing.T) {
	r := full()
	root, figures := page(t, r)
	for _, id := range plots {
		if f := figures[id]; f == nil || !has(f, "svg") || !has(f, "figcaption") {
			t.Errorf("no plot %q", id)
		}
	}
	all := text(root)
	for _, want := range []string{"<script>x</script>", "a <note>.", "2 nodes (own)", "Redis 7.0", "<host>"} {
		if !strings.Contains(all, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, g := range report.Grids(r) {
		if !strings.Contains(all, g.Title) {
			t.Errorf("the page lacks the table %q", g.Title)
		}
		for _, row := range g.Rows {
			if len(row) != len(g.Columns) {
				t.Errorf("%s: %d columns, and %q", g.Title, len(g.Columns), row)
			}
		}
	}
	// The peer that takes twice as long is the baseline.
	if !strings.Contains(all, "0.50 ×the median latency of redsync: Lock and unlock, 1 caller") {
		t.Errorf("the figure that is read first is not there:\n%s", all)
	}
}

func TestPlots(t *testing.T) {
	var got []string
	for _, p := range report.Plots(full()) {
		got = append(got, p.ID)
		d := xml.NewDecoder(strings.NewReader(p.SVG))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.File, err)
			}
		}
	}
	if !slices.Equal(got, plots) {
		t.Errorf("plots %q, want %q", got, plots)
	}
}

// TestLittle shows what there is, and what would be needed for the rest.
func TestLittle(t *testing.T) {
	r := full()
	r.Cells = r.Cells[:1]
	r.Interrupted = true
	r.Failures = []result.Failure{{Peer: "etcd", Cell: "lock", Round: 1, Error: "it is <down>"}}
	root, figures := page(t, r)
	if len(figures) != 2 { // latency and throughput
		t.Errorf("%d plots of one cell", len(figures))
	}
	all := text(root)
	for _, want := range []string{"Interrupted: ", "etcd, lock, round 1: it is <down>", "No plot “delay”: it needs -delay-sweep"} {
		if !strings.Contains(all, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	page(t, &result.Result{}) // nothing at all
}

func TestTable(t *testing.T) {
	r := full()
	r.Cells[0].Rounds[0].Errors, r.Cells[0].Rounds[0].FirstError = 3, "no quorum"
	r.Failures = []result.Failure{{Peer: "etcd", Cell: "lock", Round: 1, Error: "it is down"}}
	r.Interrupted = true
	var b bytes.Buffer
	if err := report.Table(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"p50", "p90", "p99", "p99.9", "max", "Each node, 1 caller", "By distance of all nodes", "Note: a <note>.",
		"redlock, lock callers=1: 3 calls failed, the first with: no quorum",
		"FAILED: etcd, lock, round 1: it is down", "INTERRUPTED",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "node CPU") {
		t.Error("a column that was never measured is shown")
	}
}

func TestText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 900: "900ns", 1500: "1.50 µs", 45600 * time.Nanosecond: "45.6 µs",
		123 * time.Millisecond: "123 ms", 5 * time.Second: "5.00 s",
	} {
		if got := report.Time(d); got != want {
			t.Errorf("%d ns are written %q, want %q", d, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0.00", 0.0123: "0.012", 0.5: "0.50", 12: "12.00"} {
		if got := report.Ratio(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
	if got := report.Clip("aµ\nbc", 4); got != "aµ …" {
		t.Errorf("clipped to %q", got)
	}
}
