// What is printed, for made-up runs.

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// heard returns a watch that has heard some events, and what it printed.
func heard(conf config) (*watch, *bytes.Buffer) {
	var out bytes.Buffer
	w := newWatch(conf, &screen{out: &out, width: 80, begin: time.Now()})
	for id := 1; id <= conf.workers; id++ {
		w.members = append(w.members, &member{id: id, pid: 100 + id})
	}
	return w, &out
}

func TestReportExact(t *testing.T) {
	t.Parallel()
	w, out := heard(config{workers: 3, invoices: 3, ttl: time.Second})
	one, two, three := w.members[0], w.members[1], w.members[2]
	one.killed = true
	for _, e := range []event{
		{Kind: ready, from: one},
		{Kind: held, Customer: 4, Wait: time.Millisecond, Left: 990 * time.Millisecond, from: one},
		{Kind: stalled, Customer: 4, Invoice: 9, Left: 989 * time.Millisecond, from: one},
		{Kind: stalled, Customer: 5, Invoice: 9, Left: 989 * time.Millisecond, from: three}, // one is enough
		{Kind: held, Customer: 5, Wait: 3 * time.Millisecond, from: three},
		{Kind: billed, Customer: 5, Invoice: 8, Cents: 1, from: three},
		{Kind: held, Customer: 4, Wait: 2 * time.Millisecond, from: two},
		{Kind: exited, Text: "signal: killed", from: one},
	} {
		e.At = time.Now()
		w.hear(e)
	}
	one.asked, two.asked, three.asked = 1, 5, 2
	w.takeover, w.took = 1020*time.Millisecond, 1500*time.Millisecond

	const want = `billed once       3 of 3
billed twice      0
left unbilled     0
amounts           reconciled: 1,234.05 invoiced, charged and on the accounts
lock waits        p50 2.0 ms, max 3.0 ms
lock attempts     8, of which 3 were granted and the others found the customer taken
billed by worker  1: 0 (killed), 2: 1, 3: 2
killed            worker 1, billing invoice 9; customer-04 taken over after 1.0 s
total time        1.5 s
every invoice was billed exactly once`
	a := audit{once: 3, invoiced: 123405, charged: 123405, accounts: 123405, byWorker: map[int]int{2: 1, 3: 2}}
	if got := report(a, w); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	events := out.String()
	for _, part := range []string{
		"worker 1 (pid 101) killed while holding lock customer-04; its lease ends in 1.0 s\n",
		"worker 2 took over customer-04 after ",
	} {
		if !strings.Contains(events, part) {
			t.Errorf("events lack %q:\n%s", part, events)
		}
	}
	if n := strings.Count(events, "\n"); n != 2 || w.failures != 0 {
		t.Errorf("%d events, %d failures:\n%s", n, w.failures, events)
	}
}

func TestReportDoubles(t *testing.T) {
	t.Parallel()
	w, out := heard(config{workers: 2, invoices: 20, noLock: true})
	a := audit{once: 8, twice: 7, open: 5, wrongState: 1, invoiced: 2000, charged: 2200, accounts: 1900, wrongAccounts: 3}
	for id := int64(1); id <= 7; id++ {
		a.doubles = append(a.doubles, double{id, 1, []int{2, 1, 2}})
		w.hear(event{Kind: billed, Invoice: id, Customer: 1, from: w.members[0]})
		w.hear(event{Kind: billed, Invoice: id, Customer: 1, from: w.members[1]})
	}
	w.hear(event{Kind: stderr, Text: "panic: oh", from: w.members[1]})
	w.hear(event{Kind: exited, Text: "exit status 2", from: w.members[1]})
	got := report(a, w)
	for _, part := range []string{
		"billed twice      7\n",
		"left unbilled     5\n",
		"NOT reconciled: 20.00 invoiced, 22.00 charged, 19.00 on the accounts; 3 accounts wrong\n",
		"states            1 invoices whose state and charges disagree\n",
		"failed            1 workers\n",
		"invoice 5 of customer-01 was charged 3 times, by workers 2 1 2\n… and 2 more\n",
		"\nNOT every invoice was billed exactly once",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("report lacks %q:\n%s", part, got)
		}
	}
	if n := strings.Count(out.String(), "a second time"); n != 3 {
		t.Errorf("%d double billings shown:\n%s", n, out)
	}
	for _, part := range []string{"worker 2: stderr: panic: oh\n", "worker 2 (pid 102) failed: exit status 2\n"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("events lack %q:\n%s", part, out)
		}
	}
	if p := w.progress().String(); p != "7 of 20 billed, 7 of them twice; by worker 1:7  2:7" {
		t.Errorf("progress: %q", p)
	}
}

func TestReportChaos(t *testing.T) {
	t.Parallel()
	w, out := heard(config{workers: 4, invoices: 9, chaos: true, ttl: time.Second})
	one, two := w.members[0], w.members[1]
	ago := time.Now().Add(-2 * time.Second)
	w.chaos.struck[7] = &hit{moment: checked, who: one, at: ago, stopped: 1900 * time.Millisecond}
	w.chaos.struck[8] = &hit{moment: checked, who: one, at: ago, stopped: 1800 * time.Millisecond}
	w.chaos.struck[9] = &hit{moment: written, who: w.members[2], at: ago}
	for _, e := range []event{
		{Kind: billed, Customer: 4, Invoice: 9, from: two}, // of somebody who was killed
		{Kind: billed, Customer: 3, Invoice: 7, from: two},
		{Kind: refused, Customer: 3, Invoice: 7, from: one},
		{Kind: billed, Customer: 3, Invoice: 8, from: two},
		{Kind: billed, Customer: 3, Invoice: 8, from: one},
		{Kind: refused, Customer: 3, Text: "fence: stale", from: two}, // at its look-up
	} {
		e.At = ago.Add(1700 * time.Millisecond)
		w.hear(e)
	}
	var events []string
	for line := range strings.Lines(out.String()) {
		events = append(events, strings.TrimSpace(line[9:]))
	}
	want := []string{
		"worker 2 took over customer-03 and billed invoice 7, after 1.7 s",
		"worker 1 continued after 1.9 s: refused as stale, invoice 7 was not billed again",
		"worker 2 took over customer-03 and billed invoice 8, after 1.7 s",
		"worker 1 continued after 1.8 s: billed invoice 8 a second time",
		"worker 2 refused as stale, nothing was billed: fence: stale",
	}
	if !slices.Equal(events, want) {
		t.Errorf("got\n%q\nwant\n%q", events, want)
	}
	got := report(audit{}, w)
	for _, part := range []string{
		"\nchaos             2 workers stopped between check and commit, 1 killed\n",
		"\nrefused as stale  2 times, and nothing was billed\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("report lacks %q:\n%s", part, got)
		}
	}
	w.conf.noFence = true
	if got := report(audit{}, w); !strings.Contains(got, "\nfence             none (-no-fence)\n") || strings.Contains(got, "stale") {
		t.Errorf("without the fence:\n%s", got)
	}
}

func TestLiveScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &screen{out: &out, live: true, color: true, width: 40, begin: time.Now()}
	s.status(progress{billed: 15, total: 30, workers: []string{"1:15"}})
	if want := "\r" + strings.Repeat("█", 15) + strings.Repeat("░", 15) + " 15 of 30" + "\x1b[K"; out.String() != want {
		t.Errorf("bar: %q", out.String())
	}
	out.Reset()
	s.event(bad, "worker %d", 1)
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[K\x1b[31m") || !strings.HasSuffix(got, "s  worker 1\x1b[0m\n") {
		t.Errorf("event: %q", got)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for cents, want := range map[int64]string{0: "0.00", 5: "0.05", 99_999: "999.99", 100_000: "1,000.00", 123_456_789_01: "123,456,789.01"} {
		if got := money(cents); got != want {
			t.Errorf("money(%d) = %q, want %q", cents, got, want)
		}
	}
	values := []time.Duration{3, 1, 2}
	if a, b, c := quantile(values, 0.5), quantile(values, 1), quantile(nil, 0.5); a != 2 || b != 3 || c != 0 {
		t.Errorf("quantiles %d %d %d", a, b, c)
	}
}
