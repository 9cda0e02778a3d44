// Progress, for who watches a run.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quorumlock/redlock/bench/internal/report"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// A progress writes one line per measurement: over the last one on a terminal,
// below it elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	setup    result.Setup
	started  time.Time
	total    int
	count    int // measurements that have ended, or were not made
	made     int
	now      string
}

func newProgress(w io.Writer, setup result.Setup) *progress {
	p := &progress{w: w, setup: setup, started: time.Now()}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) begin(round int, s result.Situation, peer string) {
	p.now = fmt.Sprintf("round %d of %d, %s, %s", round+1, p.setup.Rounds, s, peer)
	if p.terminal {
		p.line("…")
	}
}

func (p *progress) skip() { p.count++ }

func (p *progress) done(r result.Round, err error) {
	p.count++
	p.made++
	switch {
	case errors.Is(err, context.Canceled):
		p.line("interrupted")
	case err != nil:
		p.line("failed")
	case r.Least > 0:
		p.line(fmt.Sprintf("%d held, %d lost", r.Cycles, r.Lost))
	case r.Took > 0:
		p.line(fmt.Sprintf("%.0f/s, %d errors", float64(r.Cycles)/r.Took.Seconds(), r.Errors))
	}
}

// line writes what is being measured, with a remark. How long it will take follows
// from how long it took so far.
func (p *progress) line(remark string) {
	left := "?"
	if p.made > 0 {
		each := time.Since(p.started) / time.Duration(p.count)
		left = (each * time.Duration(p.total-p.count)).Round(time.Second).String()
	}
	text := fmt.Sprintf("[%d/%d, %s left] %s: %s", p.count, p.total, left, p.now, remark)
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", report.Clip(text, 110)) // a line that wraps could not be written over
		return
	}
	fmt.Fprintln(p.w, text)
}

// say writes a line that stays.
func (p *progress) say(text string) {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	fmt.Fprintln(p.w, text)
}

func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
