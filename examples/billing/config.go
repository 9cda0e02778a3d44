// Flags: what a run is, checked completely before anything is started.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// nodesEnv names the environment variable that stands in for -redis.
const nodesEnv = "REDLOCK_NODES"

// A config is one run of the example.
type config struct {
	workers   int
	customers int
	invoices  int
	ttl       time.Duration
	work      time.Duration // mean time of one charge
	nodes     []string      // empty: embedded nodes
	dsn       string        // empty: SQLite in a temporary folder
	seed      uint64
	noLock    bool
	noKill    bool
	noStop    bool
	noFence   bool
	chaos     bool
	stop      bool // follows from the others
	verbose   bool
}

const usage = `Usage: billing [flags]

Bills every invoice of a sample ledger exactly once, with several processes.

Flags:
`

// parseConfig reads the arguments. It reports every bad value, not only the
// first, and returns flag.ErrHelp after it has printed the usage to out.
func parseConfig(args []string, getenv func(string) string, out io.Writer) (config, error) {
	var c config
	var nodes string
	fs := flag.NewFlagSet("billing", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed by main, once
	fs.IntVar(&c.workers, "workers", 4, "worker `processes`, 1 to 64")
	fs.IntVar(&c.customers, "customers", 20, "`customers` in the ledger, 1 to 1000; each has one lock")
	fs.IntVar(&c.invoices, "invoices", 240, "`invoices` in the ledger, 1 to 10000")
	fs.DurationVar(&c.ttl, "ttl", 2*time.Second, "`TTL` of a lock, 200ms to 1m in whole milliseconds")
	fs.DurationVar(&c.work, "work", 30*time.Millisecond, "mean `time` of one charge, 1ms to 1m; may exceed the TTL")
	fs.StringVar(&nodes, "redis", "", "Redis `nodes`, separated by commas: redis:// URLs or host:port (default $"+nodesEnv+", else 5 embedded nodes)")
	fs.StringVar(&c.dsn, "dsn", "", "PostgreSQL `DSN` for the ledger (default SQLite in a temporary file)")
	fs.Uint64Var(&c.seed, "seed", 0, "`seed` of the ledger and of the workers' choices (default random)")
	fs.BoolVar(&c.noLock, "no-lock", false, "work without locks, to see what they prevent; kills and stops nobody")
	fs.BoolVar(&c.chaos, "chaos", false, "stop and kill workers at the worst moments (SIGSTOP; Unix only)")
	fs.BoolVar(&c.noFence, "no-fence", false, "show the ledger no fencing tokens, to see what they prevent with -chaos")
	fs.BoolVar(&c.noKill, "no-kill", false, "kill no worker")
	fs.BoolVar(&c.noStop, "no-stop", false, "stop no worker (SIGSTOP; Unix only)")
	fs.BoolVar(&c.verbose, "v", false, "print every lock and every charge")

	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(out)
			_, _ = io.WriteString(out, usage)
			fs.PrintDefaults()
		}
		return config{}, err
	}
	c.stop = !c.noStop && !c.noLock && !c.chaos && canSuspend // without locks there is no holder
	source := "-redis"
	if nodes == "" {
		nodes, source = getenv(nodesEnv), nodesEnv
	}
	if nodes != "" {
		c.nodes = strings.Split(nodes, ",")
	}
	if c.seed == 0 {
		c.seed = 1 + rand.Uint64N(999_999) // short enough to type
	}
	return c, c.check(fs.Args(), source)
}

// check returns all faults of the values, joined. Source names where the list
// of nodes came from.
func (c *config) check(rest []string, source string) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	within := func(name string, value, low, high int) {
		if value < low || value > high {
			fault("-%s %d: must be from %d to %d", name, value, low, high)
		}
	}
	if len(rest) > 0 {
		fault("unexpected argument %q", rest[0])
	}
	within("workers", c.workers, 1, 64)
	within("customers", c.customers, 1, 1000)
	within("invoices", c.invoices, 1, 10_000)
	switch {
	case c.ttl < 200*time.Millisecond || c.ttl > time.Minute:
		fault("-ttl %v: must be from 200ms to 1m", c.ttl)
	case c.ttl%time.Millisecond != 0:
		fault("-ttl %v: must be whole milliseconds", c.ttl)
	}
	if c.work < time.Millisecond || c.work > time.Minute {
		fault("-work %v: must be from 1ms to 1m", c.work)
	}
	if c.workers == 1 && c.kills() {
		fault("-workers 1: nobody is left when the worker is killed; use 2 or more, or -no-kill")
	}
	for _, pair := range []struct {
		both bool
		text string
	}{
		{c.chaos && c.noLock, "-chaos -no-lock: without locks there is no holder to stop or kill"},
		{c.chaos && c.noKill, "-chaos -no-kill: chaos is stops and kills"},
		{c.chaos && c.noStop, "-chaos -no-stop: chaos is stops and kills"},
		{c.noLock && c.noFence, "-no-lock -no-fence: without locks there are no tokens to leave out"},
		{c.chaos && !canSuspend, "-chaos: this system has no SIGSTOP"},
	} {
		if pair.both {
			fault("%s", pair.text)
		}
	}
	if c.chaos {
		c.checkChaos(fault)
	}
	if len(c.nodes) > 0 {
		if _, err := parseNodes(c.nodes); err != nil {
			fault("%s: %s", source, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	if c.dsn != "" {
		if err := checkDSN(c.dsn); err != nil {
			fault("-dsn: %w", err)
		}
	}
	return errors.Join(faults...)
}

// kills tells whether a worker is killed in this run, but for chaos. Without
// locks there is no holder to kill.
func (c *config) kills() bool { return !c.noKill && !c.noLock && !c.chaos }
