// Bench measures quorum latency: what it costs to lock, unlock and extend on N
// independent Redis nodes, and to hand a lock over, with this library and with
// others, side by side in the same run. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

// Exit codes. A peer that fails, and nodes that are down, are 1; what was
// measured is written nevertheless.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	logging.Disable() // go-redis reports what its callers are told as well
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(bench(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// bench is the program: figures go to out, all else to log.
func bench(ctx context.Context, args []string, out, log io.Writer) int {
	conf, err := parseConfig(args, os.Getenv, out)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		complain(log, err)
		fmt.Fprintln(log, "Run with -h for the flags.")
		return exitUsage
	}
	if conf.from != "" {
		err = renderFile(conf, out)
	} else {
		err = run(ctx, conf, out, log)
	}
	switch {
	case ctx.Err() != nil:
		complain(log, errors.New("interrupted"))
		return exitInterrupted
	case err != nil:
		complain(log, err)
		return exitFailed
	}
	return exitOK
}

// complain prints an error that may have several lines.
func complain(log io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(log, "bench: %s\n", strings.TrimSuffix(line, "\n"))
	}
}
