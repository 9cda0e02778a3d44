// The dashboard and the alerts, against a scrape.

package redlockotel_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// A vocabulary is what a scrape has.
type vocabulary struct {
	samples  map[string]bool
	families []string
	labels   map[string]map[string]bool // with their values
}

func newVocabulary(scrape string) *vocabulary {
	v := &vocabulary{samples: make(map[string]bool), labels: make(map[string]map[string]bool), families: families(scrape)}
	for line := range strings.Lines(scrape) {
		if !strings.HasPrefix(line, "redlock_") {
			continue
		}
		name, rest, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		v.samples[name] = true
		for _, m := range matcher.FindAllStringSubmatch(rest, -1) {
			if v.labels[m[1]] == nil {
				v.labels[m[1]] = make(map[string]bool)
			}
			v.labels[m[1]][m[3]] = true
		}
	}
	return v
}

// unknown returns what a query refers to and the scrape has not. Prometheus adds job and
// instance.
func (v *vocabulary) unknown(query string) (names []string) {
	r := parse(query)
	for _, m := range r.metrics {
		if !v.samples[m] {
			names = append(names, m)
		}
	}
	for _, l := range r.labels {
		if v.labels[l] == nil && l != "job" && l != "instance" {
			names = append(names, l)
		}
	}
	for label, values := range r.values {
		for _, value := range values {
			if !v.labels[label][value] {
				names = append(names, label+"="+value)
			}
		}
	}
	return names
}

func TestVocabulary(t *testing.T) {
	v := newVocabulary(wholeScrape(t))
	for query, want := range map[string][]string{
		`sum(rate(redlock_lease_acquired_total{job="x"}[5m]))`:                     {"job=x"},
		`sum(rate(redlock_lease_acquired[5m]))`:                                    {"redlock_lease_acquired"},
		`redlock_lock_duration_seconds`:                                            {"redlock_lock_duration_seconds"},
		`sum by (cause) (redlock_lease_lost_total)`:                                {"cause"},
		`redlock_lease_lost_total{redlock_cause!~"expired|stolen"}`:                {"redlock_cause=stolen"},
		`sum by (redlock_cause, instance) (redlock_lease_lost_total{job=~"$job"})`: nil,
	} {
		if got := v.unknown(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q are unknown, want %q", query, got, want)
		}
	}
}

// dashboardQueries returns the expressions of all panels and variables.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("grafana/dashboard.json")
	noErr(t, err)
	var dashboard struct {
		Title, UID string
		Panels     []struct {
			Type, Title, Description string
			ID                       int
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Type, Definition string }
		}
	}
	noErr(t, json.Unmarshal(text, &dashboard))
	if dashboard.UID == "" || dashboard.Title == "" {
		t.Error("the dashboard has no uid or no title")
	}
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok {
					t.Fatalf("%q is over %q", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("panel %q has no query or no description", p.Title)
		}
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			queries = append(queries, v.Definition)
		}
	}
	return queries
}

// TestDashboard: what the panels ask for exists, and what exists is on a panel.
func TestDashboard(t *testing.T) {
	v := newVocabulary(wholeScrape(t))
	shown := make(map[string]bool)
	for _, q := range dashboardQueries(t) {
		// The variables' function, with a label that is no metric.
		if m := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(q); m != nil {
			q = m[1]
		}
		if names := v.unknown(q); len(names) > 0 {
			t.Errorf("%s: %q are not in a scrape", q, names)
		}
		for _, m := range parse(q).metrics {
			shown[m], shown[family(m)] = true, true
		}
	}
	for _, f := range v.families {
		if !shown[f] {
			t.Errorf("%s is on no panel", f)
		}
	}
}

// TestAlerts: what the rules ask for exists, and each says where to go on.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("prometheus/alerts.yml")
	noErr(t, err)
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	noErr(t, yaml.UnmarshalStrict(text, &rules))
	v := newVocabulary(wholeScrape(t))
	headings := make(map[string]bool)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if names := v.unknown(r.Expr); len(names) > 0 {
				t.Errorf("%s: %q are not in a scrape", r.Alert, names)
			}
			if len(parse(r.Expr).metrics) == 0 {
				t.Errorf("%s asks for nothing", r.Alert)
			}
			if !strings.Contains("critical warning", r.Labels["severity"]) || r.Labels["severity"] == "" {
				t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s does not say why", r.Alert)
			}
			heading, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://github.com/quorumlock/redlock/blob/main/docs/operations.md#")
			if !ok {
				t.Errorf("%s does not say where to go on", r.Alert)
			}
			headings[heading] = true
		}
	}
	want := []string{
		"a-lease-was-lost", "a-node-gives-no-votes", "heartbeats-are-slow", "keys-were-left", "nobody-can-lock", "waits-grow",
	}
	if got := slices.Sorted(maps.Keys(headings)); !slices.Equal(got, want) {
		t.Errorf("the rules lead to %q, want %q", got, want)
	}
	runbook, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Skip("NOT TESTED: headings of docs/operations.md, which is not there")
	}
	for _, h := range want {
		heading := regexp.MustCompile(`(?mi)^#+ ` + strings.ReplaceAll(h, "-", "[ -]") + `$`)
		if !heading.Match(runbook) {
			t.Errorf("docs/operations.md has no heading for #%s", h)
		}
	}
}

// TestReadme: its table has the metrics that there are.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	noErr(t, err)
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(redlock_\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		named = append(named, m[1])
	}
	slices.Sort(named)
	if got := families(wholeScrape(t)); !slices.Equal(got, named) {
		t.Errorf("README.md has\n%q, a scrape\n%q", named, got)
	}
}

// TestAlertsFire lets Prometheus itself say when the alerts fire, and when not.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("NOT TESTED: when alerts fire, for want of promtool")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "alerts_test.yml")
	cmd.Dir = "prometheus"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
