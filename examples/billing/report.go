// The summary at the end of a run.

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// report lays out what the ledger shows and what the workers counted.
func report(a audit, w *watch) string {
	var b strings.Builder
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-16s  "+format+"\n", append([]any{label}, args...)...)
	}
	row("billed once", "%d of %d", a.once, w.conf.invoices)
	row("billed twice", "%d", a.twice)
	row("left unbilled", "%d", a.open)
	if a.reconciled() {
		row("amounts", "reconciled: %s invoiced, charged and on the accounts", money(a.invoiced))
	} else {
		row("amounts", "NOT reconciled: %s invoiced, %s charged, %s on the accounts; %d accounts wrong",
			money(a.invoiced), money(a.charged), money(a.accounts), a.wrongAccounts)
	}
	if a.wrongState > 0 {
		row("states", "%d invoices whose state and charges disagree", a.wrongState)
	}
	if w.conf.noLock {
		row("locks", "none (-no-lock)")
	} else {
		asked := 0
		for _, m := range w.members {
			asked += m.asked
		}
		row("lock waits", "p50 %s, max %s", millis(quantile(w.waits, 0.5)), millis(quantile(w.waits, 1)))
		row("lock attempts", "%d, of which %d were granted and the others found the customer taken", asked, len(w.waits))
	}
	if w.longest > w.conf.ttl && !w.conf.noLock {
		row("longest hold", "%s, %.1f times the TTL", seconds(w.longest), float64(w.longest)/float64(w.conf.ttl))
	}
	label := "billed by worker"
	for line := range slices.Chunk(w.shares(a), 8) {
		row(label, "%s", strings.Join(line, ", "))
		label = ""
	}
	if w.conf.kills() {
		row("killed", "%s", w.fate())
	}
	if w.conf.stop {
		row("stopped", "%v", w.stop)
	}
	if w.conf.chaos {
		row("chaos", "%v", w.chaos)
	}
	switch {
	case w.conf.noFence:
		row("fence", "none (-no-fence)")
	case w.conf.chaos || w.chaos.stale > 0:
		row("refused as stale", "%d times, and nothing was billed", w.chaos.stale)
	}
	if w.failures > 0 {
		row("failed", "%d workers", w.failures)
	}
	row("total time", "%s", seconds(w.took))
	for i, d := range a.doubles {
		if i == 5 {
			fmt.Fprintf(&b, "… and %d more\n", len(a.doubles)-i)
			break
		}
		fmt.Fprintf(&b, "invoice %d of %s was charged %d times, by workers %s\n",
			d.invoice, customerName(d.customer), len(d.workers), strings.Trim(fmt.Sprint(d.workers), "[]"))
	}
	if a.exactlyOnce() {
		b.WriteString("every invoice was billed exactly once")
	} else {
		b.WriteString("NOT every invoice was billed exactly once")
	}
	return b.String()
}

// shares tells how many charges of the ledger are whose.
func (w *watch) shares(a audit) []string {
	var all []string
	for _, m := range w.members {
		text := fmt.Sprintf("%d: %d", m.id, a.byWorker[m.id])
		if m.killed {
			text += " (killed)"
		}
		all = append(all, text)
	}
	return all
}

// fate tells what became of the lock of the killed worker.
func (w *watch) fate() string {
	switch {
	case w.victim == nil:
		return "nobody"
	case w.takeover == 0:
		return fmt.Sprintf("worker %d, billing invoice %d; nobody took over %s", w.victim.id, w.invoice, customerName(w.customer))
	}
	return fmt.Sprintf("worker %d, billing invoice %d; %s taken over after %s",
		w.victim.id, w.invoice, customerName(w.customer), seconds(w.takeover))
}

// quantile returns the value at q, from 0 to 1, of the sorted values.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// money prints cents with thousands set apart.
func money(cents int64) string {
	text := fmt.Sprint(cents / 100)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return fmt.Sprintf("%s.%02d", text, cents%100)
}
