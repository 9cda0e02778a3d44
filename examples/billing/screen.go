// What is printed while the run goes on: events, and a bar or now and then a line.

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// A tone is how an event is shown.
type tone string

const (
	plain tone = ""
	good  tone = "\x1b[32m"
	bad   tone = "\x1b[31m"
)

// A screen prints lines and, on a terminal, keeps the state of the run in a
// last line that is drawn anew. Its methods are for one goroutine.
type screen struct {
	out   io.Writer
	live  bool // out is a terminal
	color bool
	width int
	begin time.Time
}

func newScreen(out *os.File) *screen {
	s := &screen{out: out, width: 80, begin: time.Now()}
	if fd := int(out.Fd()); term.IsTerminal(fd) && os.Getenv("TERM") != "dumb" {
		s.live = true
		s.color = os.Getenv("NO_COLOR") == ""
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			s.width = width
		}
	}
	return s
}

// every is how often status is to be called.
func (s *screen) every() time.Duration {
	if s.live {
		return 80 * time.Millisecond
	}
	return time.Second
}

// printf prints a line above the live one.
func (s *screen) printf(format string, args ...any) {
	s.clear()
	s.write(fmt.Sprintf(format, args...) + "\n")
}

// event prints a line with the time since the start.
func (s *screen) event(t tone, format string, args ...any) {
	line := fmt.Sprintf("%6.2fs  ", time.Since(s.begin).Seconds()) + fmt.Sprintf(format, args...)
	if s.color && t != plain {
		line = string(t) + line + "\x1b[0m"
	}
	s.printf("%s", line)
}

// status shows the state: a bar on a terminal, a line elsewhere.
func (s *screen) status(p progress) {
	if !s.live {
		s.event(plain, "%v", p)
		return
	}
	s.write("\r" + clip(p.bar(), s.width-1) + "\x1b[K")
}

func (s *screen) clear() {
	if s.live {
		s.write("\r\x1b[K")
	}
}

// write ignores errors: a run goes on when nobody reads what it prints.
func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }

// A progress is the state of a run at one moment.
type progress struct {
	billed, twice, total int
	workers              []string // one short text each, if there are few
}

func (w *watch) progress() progress {
	p := progress{billed: len(w.billed), twice: w.twice, total: w.conf.invoices}
	if len(w.members) > 8 {
		return p
	}
	for _, m := range w.members {
		mark := ""
		if m.killed {
			mark = "†"
		}
		if m.stopped {
			mark = "‖"
		}
		p.workers = append(p.workers, fmt.Sprintf("%d:%d%s", m.id, w.byWorker[m.id], mark))
	}
	return p
}

func (p progress) String() string {
	text := fmt.Sprintf("%d of %d billed", p.billed, p.total)
	if p.twice > 0 {
		text += fmt.Sprintf(", %d of them twice", p.twice)
	}
	if len(p.workers) > 0 {
		text += "; by worker " + strings.Join(p.workers, "  ")
	}
	return text
}

func (p progress) bar() string {
	const cells = 30
	full := p.billed * cells / p.total
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full) + " " + p.String()
}

// clip shortens a line to a number of characters, all of them one cell wide.
func clip(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:max(0, width)])
	}
	return line
}
