// One measurement: a peer, in a situation, for a moment.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/bench/internal/nodes"
	"github.com/quorumlock/redlock/bench/internal/peer"
	"github.com/quorumlock/redlock/bench/internal/result"
)

// A patience bounds what a peer may make a run wait.
type patience struct {
	call  time.Duration // what a call may take; longer is a failure
	grace time.Duration // for a call to return after its context has ended
}

var defaultPatience = patience{call: 30 * time.Second, grace: 10 * time.Second}

// errStuck tells that calls never came back: nothing more is asked of that peer.
var errStuck = errors.New("calls do not return although their context has ended")

// A slot is one measurement.
type slot struct {
	peer      peer.Peer
	situation result.Situation
	setup     result.Setup
	env       peer.Env
	set       *nodes.Set
	name      func(group, i int) string
	maxDelay  time.Duration
	patience  patience

	// trouble breaks a node when the callers are ready, and returns what heals it;
	// nil for none.
	trouble func() (heal func(context.Context) error, err error)

	// Filled while it is measured.
	recording atomic.Bool
	turn      atomic.Int64 // of the names that all callers go through
	mu        sync.Mutex   // guards round while callers work
	round     result.Round
}

// measure makes the measurement. If ctx ends meanwhile, the round holds what there
// was until then.
func (s *slot) measure(ctx context.Context) (round result.Round, err error) {
	if s.situation.Kind == result.PerNode {
		s.env.Observe = s.observe
	}
	settle()
	size := measureSize()
	crew, err := s.crew(ctx)
	defer func() {
		if !errors.Is(err, errStuck) { // closing might never return
			closeSessions(crew)
		}
	}()
	if err != nil {
		return result.Round{}, err
	}
	if s.trouble != nil {
		heal, broke := s.trouble()
		if heal != nil { // before the sessions are closed, which would wait for the node
			defer func() { err = errors.Join(err, heal(context.WithoutCancel(ctx))) }()
		}
		if broke != nil {
			return result.Round{}, broke
		}
	}
	s.round = result.Round{Ops: make(map[string]*result.Series)}
	if _, err = s.pass(ctx, crew, s.setup.WarmUp); err != nil {
		return result.Round{}, fmt.Errorf("warming up: %w", err)
	}
	if s.round.Cycles == 0 && ctx.Err() == nil {
		err = fmt.Errorf("nothing succeeded while warming up: %s", s.round.FirstError)
		return result.Round{}, err
	}
	if ctx.Err() != nil {
		return result.Round{}, ctx.Err()
	}

	s.round = result.Round{Ops: make(map[string]*result.Series)}
	s.turn.Store(0)
	s.recording.Store(true)
	nodesBefore, asking := s.nodeCounters(ctx)
	goroutines := watchGoroutines()
	before, cpuBefore := memory(), cpuTime()
	took, err := s.pass(ctx, crew, s.setup.Duration)
	cpu, after := cpuTime()-cpuBefore, memory()
	most := goroutines()
	s.recording.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return result.Round{}, err
	}
	s.round.Took = took
	s.round.Usage = result.Usage{Allocs: after.Mallocs - before.Mallocs, AllocBytes: after.TotalAlloc - before.TotalAlloc, ClientCPU: cpu}
	if s.peer.Serve == nil && ctx.Err() == nil {
		used := s.set.Read(ctx).Since(nodesBefore).Minus(asking)
		s.round.Usage.Commands, s.round.Usage.NodeCPU = used.Commands, used.CPU
		s.round.Usage.BytesIn, s.round.Usage.BytesOut = used.BytesIn, used.BytesOut
		s.round.Usage.Connections = s.set.Connections(ctx)
	}
	now := measureSize()
	s.round.Usage.Goroutines = max(most-size.goroutines-s.workers(), 0)
	s.round.Usage.Memory = max(now.memory-size.memory, 0)
	if s.round.Cycles == 0 && ctx.Err() == nil {
		err = fmt.Errorf("nothing succeeded: %s", s.round.FirstError)
	}
	return s.round, err
}

// nodeCounters reads the nodes' counters, and what reading them adds.
func (s *slot) nodeCounters(ctx context.Context) (now nodes.Reading, asking nodes.Counters) {
	if s.peer.Serve != nil {
		return nil, asking
	}
	earlier := s.set.Read(ctx)
	now = s.set.Read(ctx)
	return now, now.Since(earlier)
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// observe takes what a peer tells of a single node.
func (s *slot) observe(node int, op string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.recording.Load() { // of the warm-up, or late
		return
	}
	name := s.set.Options[node].Addr
	if s.round.Nodes == nil {
		s.round.Nodes = make(map[string]map[string]*result.Series)
	}
	if s.round.Nodes[name] == nil {
		s.round.Nodes[name] = make(map[string]*result.Series)
	}
	if s.round.Nodes[name][op] == nil {
		s.round.Nodes[name][op] = new(result.Series)
	}
	s.round.Nodes[name][op].Record(took)
}

// record returns where an operation is recorded.
func (s *slot) record(op string) *result.Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.round.Ops[op] == nil {
		s.round.Ops[op] = new(result.Series)
	}
	return s.round.Ops[op]
}

func (s *slot) failed(ctx context.Context, err error) {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return // interrupted, which is no fault of the peer
	}
	s.mu.Lock()
	s.round.Errors++
	if s.round.FirstError == "" {
		s.round.FirstError = err.Error()
	}
	s.mu.Unlock()
	select { // a peer that fails at once would fail millions of times
	case <-ctx.Done():
	case <-time.After(10 * time.Millisecond):
	}
}

// A caller locks names in turn.
type caller struct {
	names   []string
	lockers []peer.Locker
	session peer.Session
	owner   bool // of the session
	next    int
}

// locker returns the one whose turn it is.
func (c *caller) locker() peer.Locker {
	c.next++
	return c.lockers[c.next%len(c.lockers)]
}

// crew opens the sessions and makes the callers. Callers that share names have
// sessions of their own, as processes would; the others share one.
func (s *slot) crew(ctx context.Context) ([]*caller, error) {
	share, names := s.setup.Contention, s.setup.Names
	if s.situation.Kind == result.HandOver {
		share, names = s.situation.Callers, 1
	}
	if s.situation.Kind == result.PerNode || s.situation.Kind == result.Held {
		share = 1
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience.call)
	defer cancel()
	var all []*caller
	sessions := make([]peer.Session, share)
	for i := range s.situation.Callers {
		c := &caller{}
		if sessions[i%share] == nil {
			session, err := s.peer.Open(ctx, s.env)
			if err != nil {
				return all, fmt.Errorf("open: %w", err)
			}
			sessions[i%share], c.owner = session, true
		}
		c.session = sessions[i%share]
		for j := range names {
			if s.situation.Names > 0 {
				break
			}
			c.names = append(c.names, s.name(i/share, j))
		}
		all = append(all, c)
	}
	if s.situation.Names > 0 {
		return all, nil // who makes a lock in advance would keep it
	}
	return all, prepare(all)
}

// prepare makes the lockers, many at a time: each may be several round trips, and
// the nodes may be far away.
func prepare(crew []*caller) error {
	errs := make([]error, len(crew))
	places := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for i, c := range crew {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			for _, name := range c.names {
				l, err := c.session.Locker(name)
				if err != nil {
					errs[i] = fmt.Errorf("prepare: %w", err)
					return
				}
				c.lockers = append(c.lockers, l)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the others say the same
		}
	}
	return nil
}

// closeSessions closes each session once. What could not be released ends with
// its TTL.
func closeSessions(crew []*caller) {
	for _, c := range crew {
		if c.owner {
			_ = c.session.Close()
		}
	}
}
