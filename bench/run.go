// A run: rounds, in which the peers take turns.

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/report"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// A runner is a run under way.
type runner struct {
	conf      config
	id        string // in the names of all keys
	set       *nodes.Set
	networks  map[way]*nodes.Network
	servers   map[string]peer.Server // of peers that have their own, by name
	given     map[string]bool        // peers that are asked for nothing more
	result    *result.Result
	progress  *progress
	lockNames map[string]bool // to be deleted
	gone      error           // no quorum of the nodes is left: nothing more can be measured
}

// run measures, and writes the report, also of what was measured until ctx ended.
func run(ctx context.Context, conf config, out, log io.Writer) (err error) {
	r := &runner{
		conf: conf, id: rand.Text()[:8],
		networks: make(map[way]*nodes.Network), servers: make(map[string]peer.Server),
		given: make(map[string]bool), lockNames: make(map[string]bool),
		result: &result.Result{
			Schema: result.Schema, Started: time.Now(), Args: append([]string{}, conf.args...), Commit: commit(ctx), Setup: conf.setup, Machine: machine(),
			Nodes: []result.Node{}, Cells: []*result.Cell{}, Failures: []result.Failure{}, Notes: []string{},
		},
	}
	r.progress = newProgress(log, conf.setup)
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.prepare(ctx, log); err != nil {
		return err
	}
	r.rounds(ctx)
	r.result.Took, r.result.Interrupted = time.Since(r.result.Started), ctx.Err() != nil
	r.progress.end()
	if r.gone != nil {
		r.note("%v", r.gone)
	}
	if err := report.Table(out, r.result); err != nil {
		return err
	}
	if err := writeAll(conf.out, r.result, out); err != nil {
		return err
	}
	return errors.Join(r.gone, r.result.Err())
}

// prepare provides the nodes, the ways to them, and the servers of other peers.
func (r *runner) prepare(ctx context.Context, log io.Writer) (err error) {
	if r.set, err = r.nodes(ctx); err != nil {
		return err
	}
	down, err := r.set.Ping(ctx)
	switch {
	case err != nil:
		return err
	case len(down) > 0 && !r.conf.allowDead:
		return fmt.Errorf("%s\nmeasure all the same with -allow-dead", strings.Join(down, "\n"))
	}
	for _, line := range down {
		r.note("%s", line)
	}
	for i, opts := range r.set.Options {
		r.result.Nodes = append(r.result.Nodes, result.Node{Name: opts.Addr, Kind: r.set.Kind, Version: r.set.Version(i), Dead: r.set.Dead(i)})
	}
	for _, s := range r.conf.situations() {
		if r.networks[wayOf(s)] != nil {
			continue
		}
		if r.networks[wayOf(s)], err = r.set.Behind(r.conf.delaysOf(s)); err != nil {
			return err
		}
	}
	if r.set.Kind == startEmbedded {
		r.note("the nodes are embedded: servers and callers share this process, so allocations and CPU are of both; use -start servers or -redis for figures of your own")
	}
	if err := writeJSON(r.conf.out, r.result); err != nil { // better now than when all is measured
		return fmt.Errorf("-out %s: %w", r.conf.out, err)
	}
	if r.conf.suite {
		r.note("one node is slow by 100 ms, is dead, or is silent: it is the last, and stops when the callers are ready to begin")
		r.note("what only shows a limit is measured in the first round alone: leases held, a million names, redsync with a node that is dead or silent")
	}
	if len(r.networks) > 1 || longest(r.conf.delays) > 0 {
		r.note("delays are made by proxies in the process of the callers: they add 1 to 2 ms of their own, and their CPU and allocations are in the figures")
	}
	for _, p := range r.conf.peers {
		r.result.Peers = append(r.result.Peers, result.Peer{Name: p.Name, About: p.About})
		if p.Serve != nil {
			fmt.Fprintf(log, "starting the servers of %s\n", p.Name)
			r.serve(ctx, p)
		}
	}
	return nil
}

// serve starts the servers of a peer. The run goes on without those that fail.
func (r *runner) serve(ctx context.Context, p peer.Peer) {
	server, err := p.Serve(ctx)
	if err != nil {
		r.fail(p.Name, "start of its servers", 0, err)
		r.given[p.Name] = true
		return
	}
	r.servers[p.Name] = server
}

func (r *runner) nodes(ctx context.Context) (*nodes.Set, error) {
	switch {
	case len(r.conf.redis) > 0:
		return nodes.Own(r.conf.redis), nil
	case r.conf.start == startServers:
		return nodes.Servers(ctx, r.conf.n)
	case r.conf.start == startContainers:
		return nodes.Containers(ctx, r.conf.n, r.conf.image)
	}
	return nodes.Embedded(r.conf.n)
}

// rounds measures everything as often as was asked for. In each round another peer
// begins, so that none always comes after the same one.
func (r *runner) rounds(ctx context.Context) {
	situations := r.conf.situations()
	for round := range r.conf.setup.Rounds {
		for _, s := range situations {
			for _, p := range r.conf.peers {
				if r.conf.wants(round, s, p) {
					r.progress.total++
				}
			}
		}
	}
	for round := range r.conf.setup.Rounds {
		for _, s := range situations {
			for i := range r.conf.peers {
				if ctx.Err() != nil || r.gone != nil {
					return
				}
				if p := r.conf.peers[(i+round)%len(r.conf.peers)]; r.conf.wants(round, s, p) {
					r.one(ctx, round, s, p)
				}
			}
		}
		r.keep()
	}
}

// one measures one peer once.
func (r *runner) one(ctx context.Context, round int, s result.Situation, p peer.Peer) {
	r.progress.begin(round, s, p.Name)
	setup := r.conf.setup
	setup.Duration = time.Duration(float64(setup.Duration) * r.conf.lengthOf(s))
	slot := &slot{peer: p, situation: s, setup: setup, set: r.set, patience: r.conf.patience, maxDelay: longest(r.conf.delaysOf(s))}
	if err := slot.canMeasure(); err != nil || r.given[p.Name] {
		if err != nil && round == 0 {
			r.note("%s is not measured in %s: %v", p.Name, s, err)
		}
		r.progress.skip()
		return
	}
	n := r.conf.setup.Nodes
	if s.Nodes > 0 {
		n = s.Nodes
	}
	slot.env = peer.Env{Nodes: r.networks[wayOf(s)].Options[:n], TTL: r.conf.setup.TTL}
	if server := r.servers[p.Name]; server != nil {
		slot.env.Endpoint = server.Endpoint()
	}
	slot.name = func(group, i int) string {
		name := fmt.Sprintf("redlock-bench:{%s}:%s:%s%s:%d:%d", r.id, p.Name, s.Kind, s.Fault, group, i)
		if len(r.conf.redis) > 0 { // the nodes of a run end with it
			r.lockNames[name] = true
		}
		return name
	}
	switch last := n - 1; s.Fault {
	case result.Silent:
		slot.trouble = func() (func(context.Context) error, error) { return r.set.Silence(last) }
	case result.Dead:
		slot.trouble = func() (func(context.Context) error, error) { return r.set.Kill(last) }
	case result.Slow: // its network is
	}
	measured, err := slot.measure(ctx)
	if measured.Cycles > 0 {
		r.result.Cell(p.Name, s).Set(round, measured)
	}
	if err != nil && ctx.Err() == nil {
		r.fail(p.Name, s.String(), round+1, err)
		r.given[p.Name] = errors.Is(err, errStuck)
		r.keep()
	}
	r.progress.done(measured, errors.Join(err, ctx.Err()))
	if s.Fault != "" || s.Names > 0 { // what was on its way to a stopped node came late
		if err := r.set.Flush(ctx); err != nil && ctx.Err() == nil {
			r.note("keys are left from %s: %v", s, err)
		}
	}
	if (err != nil || measured.Errors > 0) && ctx.Err() == nil {
		if _, err := r.set.Ping(ctx); err != nil && ctx.Err() == nil {
			r.gone = fmt.Errorf("the run ends early: %w", err)
		}
	}
}

// A way is to the nodes, as a situation has it.
type way struct {
	network string
	slow    bool
}

func wayOf(s result.Situation) way { return way{s.Network, s.Fault == result.Slow} }

func longest(delays []time.Duration) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	return slices.Max(delays)
}

// keep writes what there is, in case the program does not come to its end.
func (r *runner) keep() {
	r.result.Took = time.Since(r.result.Started)
	if err := writeJSON(r.conf.out, r.result); err != nil {
		r.progress.say("bench: " + err.Error())
	}
}

func (r *runner) fail(peer, cell string, round int, err error) {
	r.result.Failures = append(r.result.Failures, result.Failure{Peer: peer, Cell: cell, Round: round, Error: err.Error()})
	r.progress.say(fmt.Sprintf("bench: %s, %s: %v", peer, cell, err))
}

func (r *runner) note(format string, args ...any) {
	r.result.Notes = append(r.result.Notes, fmt.Sprintf(format, args...))
}
