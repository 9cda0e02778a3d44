// Flags: what a run is, checked completely before any I/O.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// imageEnv names the environment variable that stands in for -image.
const imageEnv = "REDLOCK_REDIS_IMAGE"

// Where nodes come from if the user brings none.
const (
	startEmbedded   = "embedded"
	startServers    = "servers"
	startContainers = "containers"
)

// A config is one run.
type config struct {
	setup     result.Setup
	redis     []*redis.Options // the user's own nodes; empty: start is used
	start     string
	n         int
	image     string
	callers   []int
	waiters   int
	delays    []time.Duration // by node; empty for none
	sweep     []time.Duration
	measure   map[result.Kind]bool
	peers     []peer.Peer
	out       string
	from      string
	allowDead bool
	suite     bool
	only      *regexp.Regexp     // of a suite; nil for all
	instead   []result.Situation // of a suite's, in tests
	patience  patience
	args      []string // as they were given, without passwords
}

// sweepDefault is left out where no delay is possible.
const sweepDefault = "0s,5ms,20ms"

// A text is what the flags say that parsing turns into something else.
type text struct{ redis, callers, delay, sweep, measure, peers, only string }

const usage = `Usage: bench [flags]

Measures locks on a quorum of Redis nodes: this library beside others. Prints a
table, and writes result.json, report.html and the plots as SVG to the folder -out.

Flags:
`

// parseConfig reads the arguments. It reports every bad value, not only the
// first, and returns flag.ErrHelp after it has printed the usage to out.
func parseConfig(args []string, getenv func(string) string, out io.Writer) (config, error) {
	c := config{patience: defaultPatience}
	var t text
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed by main, once
	fs.StringVar(&t.redis, "redis", "", "your own `nodes`, separated by commas: redis:// URLs or host:port; keys are named redlock-bench:{…} and removed")
	fs.StringVar(&c.start, "start", startEmbedded, "`kind` of nodes to start without -redis: embedded (in this process), servers (redis-server), containers (Docker)")
	fs.IntVar(&c.n, "n", 5, "how many `nodes` to start, 1 to 25")
	fs.StringVar(&c.image, "image", "", "`image` of containers (default $"+imageEnv+", else redis:7.4)")
	fs.DurationVar(&c.setup.TTL, "ttl", 10*time.Second, "`TTL` of a lock, 100ms to 1h in whole milliseconds")
	fs.StringVar(&t.callers, "callers", "1,16", "`numbers` of callers to measure with, separated by commas, each 1 to 10000")
	fs.IntVar(&c.setup.Names, "names", 1, "`names` that each caller locks in turn, 1 to 1000")
	fs.IntVar(&c.setup.Contention, "contention", 1, "`callers` that share their names, each in a client of its own; 1: nobody waits")
	fs.DurationVar(&c.setup.Hold, "hold", 0, "`time` to hold a lock, up to half of the TTL; not part of any latency")
	fs.IntVar(&c.waiters, "waiters", 2, "`clients` between which a lock is handed over, 2 to 100")
	fs.StringVar(&t.delay, "delay", "", "what a round trip to each node takes longer, one `time` for all or one per node, such as 1ms,20ms,70ms,90ms,150ms")
	fs.StringVar(&t.sweep, "delay-sweep", sweepDefault, "besides, measure with all nodes this far away: `times` separated by commas; empty for none")
	fs.DurationVar(&c.setup.Duration, "duration", 500*time.Millisecond, "`time` of each measurement, 10ms to 1h; all peers are measured so long in each round")
	fs.DurationVar(&c.setup.WarmUp, "warmup", 200*time.Millisecond, "`time` before each measurement that does not count, up to 1m")
	fs.IntVar(&c.setup.Rounds, "rounds", 3, "`rounds`, 1 to 1000; peers take turns in each")
	fs.StringVar(&t.measure, "measure", "lock,extend,handover,nodes", "`what` to measure, separated by commas")
	fs.StringVar(&t.peers, "peers", peer.Default, "`peers`, separated by commas: "+strings.Join(peer.Names(), ", ")+
		"; or the groups "+peer.Default+" (what works on the nodes) and "+peer.Alternatives+" (the others, whose servers are started)")
	fs.StringVar(&c.out, "out", "bench-out", "`folder` for the results; files of an earlier run are replaced")
	fs.StringVar(&c.from, "from", "", "measure nothing, but make the report anew from the `file` result.json of a run")
	fs.BoolVar(&c.suite, "suite", false, "measure all that the targets and the limits of this library are about, on servers that are started: see README.md")
	fs.StringVar(&t.only, "only", "", "of -suite, only what this regular `expression` matches, such as callers=200 or held")
	fs.BoolVar(&c.allowDead, "allow-dead", false, "measure although a minority of the nodes does not answer")

	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(out)
			_, _ = io.WriteString(out, usage)
			fs.PrintDefaults()
		}
		return config{}, err
	}
	if c.image == "" {
		c.image = getenv(imageEnv)
	}
	if c.image == "" {
		c.image = "redis:7.4"
	}
	set := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) {
		set[f.Name] = true
		if f.Name == "out" {
			return // it changes no figure, and names folders of the user
		}
		value := f.Value.String()
		if f.Name == "redis" {
			value = strings.Join(nodes.Redact(strings.Split(value, ",")), ",")
		}
		c.args = append(c.args, fmt.Sprintf("-%s=%s", f.Name, value))
	})
	return c, c.check(t, set, fs.Args())
}
