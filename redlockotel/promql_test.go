// What a query of Prometheus refers to: as much of the language as it takes to find
// the names in it.

package redlockotel_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// references are the names in a query.
type references struct {
	metrics []string
	labels  []string            // by which it groups, or selects
	values  map[string][]string // that it selects, by label
}

var (
	quoted    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	selectors = regexp.MustCompile(`\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}`)
	matcher   = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"`)
	grouping  = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)`)
	ranges    = regexp.MustCompile(`\[[^\[\]]*\]`)
	numbers   = regexp.MustCompile(`(?:^|[^\w$])\d[\w.]*`) // and durations
	function  = regexp.MustCompile(`[a-zA-Z_]\w*\s*\(`)
	word      = regexp.MustCompile(`[a-zA-Z_:][\w:]*`)
)

var operators = []string{"and", "or", "unless", "offset", "bool", "by", "without", "on", "ignoring", "inf", "nan"}

func parse(query string) references {
	r := references{values: make(map[string][]string)}
	for _, s := range selectors.FindAllStringSubmatch(query, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[1], -1) {
			r.labels = append(r.labels, m[1])
			if strings.HasPrefix(m[3], "$") || m[3] == "" {
				continue
			}
			r.values[m[1]] = append(r.values[m[1]], strings.Split(m[3], "|")...)
		}
	}
	rest := selectors.ReplaceAllString(query, " ")
	rest = quoted.ReplaceAllString(rest, " ")
	for _, g := range grouping.FindAllStringSubmatch(rest, -1) {
		r.labels = append(r.labels, word.FindAllString(g[1], -1)...)
	}
	rest = grouping.ReplaceAllString(rest, " ")
	rest = ranges.ReplaceAllString(rest, " ")
	rest = function.ReplaceAllString(rest, "(")
	rest = numbers.ReplaceAllString(rest, " ")
	for _, w := range word.FindAllString(rest, -1) {
		if !slices.Contains(operators, strings.ToLower(w)) {
			r.metrics = append(r.metrics, w)
		}
	}
	return r
}

func TestParse(t *testing.T) {
	for query, want := range map[string][3][]string{
		`up`:                               {{"up"}},
		`sum by (job, le) (rate(a_b[5m]))`: {{"a_b"}, {"job", "le"}},
		`histogram_quantile(0.99, sum(rate(a:b_bucket{x=~"p|q",y!=""}[$__rate_interval])) by (le)) > 0.5`: {{"a:b_bucket"}, {"x", "y", "le"}, {"p", "q"}},
		`a{job=~"$job"} / on (z) b offset 1h or 0 * c and 1e3 > bool d`:                                   {{"a", "b", "c", "d"}, {"job", "z"}},
		`label_replace(a, "dst", "$1", "src", "(.*)") + a5m`:                                              {{"a", "a5m"}},
		`-max_over_time(a{b="c}d"}[1h:5m])`:                                                               {{"a"}, {"b"}, {"c}d"}},
	} {
		got := parse(query)
		var values []string
		for _, v := range got.values {
			values = append(values, v...)
		}
		slices.Sort(got.labels)
		slices.Sort(want[1])
		if !slices.Equal(got.metrics, want[0]) || !slices.Equal(got.labels, want[1]) || !slices.Equal(values, want[2]) {
			t.Errorf("%s: %q %q %q, want %q", query, got.metrics, got.labels, values, want)
		}
	}
}
