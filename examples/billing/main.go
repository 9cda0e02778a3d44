// Billing bills every invoice of a sample ledger exactly once, with several
// processes that agree by a lock on five independent Redis nodes. It kills one
// of them while it holds a lock, and stops another for longer than its lease.
// With -chaos it does so between the last look at the lease and the commit, where
// only the fence in the ledger helps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

// Exit codes. A failure to bill exactly once, or to run at all, is 1.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	logging.Disable() // go-redis reports what its callers are told as well
	if os.Getenv(workerEnv) != "" {
		os.Exit(workerMain())
	}
	os.Exit(parentMain())
}

func parentMain() int {
	conf, err := parseConfig(os.Args[1:], os.Getenv, os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(os.Stderr, "billing: %s\n", strings.TrimSuffix(line, "\n"))
		}
		fmt.Fprintln(os.Stderr, "Run with -h for the flags.")
		return exitUsage
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	exact, err := run(ctx, conf, newScreen(os.Stdout))
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "billing: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(os.Stderr, "billing: %v\n", err)
		return exitFailed
	case !exact:
		return exitFailed
	}
	return exitOK
}
