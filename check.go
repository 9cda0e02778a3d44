// What about the nodes makes the lock unsafe.

package redlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/quorum"
)

// A checked is what one node told about itself.
type checked struct {
	name  string
	infos []ServerInfo
	at    time.Duration // on the client's clock

	failure error // why it gives no votes
}

// Check looks at all nodes at once, for a tool or a test to be run where locks are
// put into use, and tells what makes them unsafe: a server that is there twice, a
// replica, eviction, a clock that is off, missing rights, and the like. It takes, renews,
// waits for and releases a lock of a random name on each node, which tells whether that
// works, and leaves a counter there for a minute. It fails only if ctx ends, or the
// client is closed; what a node answers, or that it does not, is a finding.
func (c *Client) Check(ctx context.Context) (*Report, error) {
	if ctx == nil {
		return nil, fmt.Errorf("redlock: check: %w", errNilContext)
	}
	probes, err := askAll(ctx, c, "check", func(ctx context.Context, n Node) ([]ServerInfo, error) {
		if n, ok := n.(Prober); ok {
			return n.Probe(ctx)
		}
		return nil, errNoProber
	})
	if err != nil {
		return nil, fmt.Errorf("redlock: check: %w", err)
	}
	trials, err := askAll(ctx, c, "check", func(ctx context.Context, n Node) (trial, error) {
		return c.try(ctx, n, c.trial()) // each its own: two nodes may be one server
	})
	if err != nil {
		return nil, fmt.Errorf("redlock: check: %w", err)
	}

	r := &findings{}
	c.checkNumber(r)
	var nodes []checked
	down := 0
	for i, l := range c.lanes {
		name := l.node.Name()
		p, failed := probes[i], trials[i].err
		if failed != nil {
			down++
			r.add(Warning, name, fmt.Sprintf("no lock can be taken and released there: %v", because(failed)), "it has no vote until that is mended")
		}
		if e := trials[i].value.calling; e != nil && failed == nil {
			severity := Warning
			if errors.Is(e, errNoLine) {
				severity = Notice // it is as it was meant
			}
			r.add(severity, name, fmt.Sprintf("who waits is not called there: %v", e), "where no quorum does, waiters only look now and then, and one who locks again at once can keep them out")
		}
		if e := trials[i].value.renewing; e != nil && failed == nil {
			r.add(Warning, name, fmt.Sprintf("no lock can be renewed there: %v", e), "it has no vote for that until it is mended")
		}
		switch {
		case failed != nil && p.err != nil: // for the same reason
		case errors.Is(p.err, errNoProber):
			r.add(Notice, name, because(p.err).Error(), "see for yourself what this report would have said")
		case p.err != nil:
			r.add(Warning, name, fmt.Sprintf("does not tell about its server: %v", because(p.err)), "see for yourself what this report would have said")
		default:
			nodes = append(nodes, checked{name: name, infos: p.value})
		}
	}
	if left := len(c.lanes) - down; left < quorum.Size(len(c.lanes)) {
		r.add(Critical, "", fmt.Sprintf("%d of %d nodes work, %d are needed", left, len(c.lanes), quorum.Size(len(c.lanes))), "nobody can take a lock")
	}
	for _, n := range nodes {
		c.checkServer(r, n)
	}
	c.checkGuard(r, nodes, down)
	checkDuplicates(r, nodes)
	c.checkClocks(r, nodes)
	return r.report(), nil
}

// because returns what a node said, without its name.
func because(err error) error {
	if n, ok := errors.AsType[*NodeError](err); ok {
		return n.Err
	}
	return err
}

// trial is a claim for a lock that nobody else has.
func (c *Client) trial() *Claim {
	lock := c.set.keyPrefix + "redlock-check-" + rand.Text()
	tag := slot.Tag(lock)
	claim := &Claim{
		Lock: lock, Tombstone: tombstonePrefix + tag + "}" + lock, Queue: queuePrefix + tag + "}" + lock, Value: rand.Text(), TTL: time.Minute,
		Retention: time.Minute, ClockBound: c.set.clockBound,
	}
	if c.set.fencing {
		claim.Fence = fencePrefix + tag + "}" + lock
	}
	return claim
}

// try takes the lock, renews it and lets another wait for it, which take rights of their
// own, and releases it. The release has a time of its own: what the others have left of
// the first may be nothing.
func (c *Client) try(ctx context.Context, n Node, claim *Claim) (t trial, err error) {
	ear := c.listen(ctx, n, claim)
	defer ear.stop()
	reply, err := n.Acquire(ctx, claim)
	if err == nil && reply.Verdict != Granted {
		err = fmt.Errorf("a new lock was not granted (verdict %d)", reply.Verdict)
	}
	if err == nil {
		longer := *claim
		longer.TTL += time.Second // a node may do nothing about an expiry that is as late already
		reply, t.renewing = n.Extend(ctx, &longer)
		if t.renewing == nil && reply.Verdict != Granted {
			t.renewing = fmt.Errorf("a lock just granted was not renewed (verdict %d)", reply.Verdict)
		}
		ear.enlist(ctx)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.set.nodeTimeout)
	defer cancel()
	reply, e := n.Release(within, claim, err != nil)
	if err == nil {
		err = e
	}
	t.calling = ear.called(within, reply.Named)
	return t, err
}

func (c *Client) checkNumber(r *findings) {
	n := len(c.lanes)
	switch {
	case n < 3:
		r.add(Notice, "", fmt.Sprintf("of %d nodes none may fail", n), "use three or five")
	case n%2 == 0:
		r.add(Notice, "", fmt.Sprintf("there are %d nodes, of which %d may fail, as of %d", n, n-quorum.Size(n), n-1), "use an odd number")
	}
}

// refusing is why a server did not tell something, if it has said so.
func refusing(s ServerInfo) string {
	if s.Refused == nil {
		return ""
	}
	return fmt.Sprintf(": %v", s.Refused)
}

// checkServer looks at what a node told about its own server, or servers.
func (c *Client) checkServer(r *findings, n checked) {
	for _, s := range n.infos {
		if c.set.crashGuard > 0 && s.RunID == "" {
			r.add(Warning, n.name, fmt.Sprintf("does not say when it started, so that WithCrashGuard has no effect%s", refusing(s)), "allow INFO")
		} else if c.set.strict && (s.RunID == "" || s.Role == "") {
			r.add(Warning, n.name, fmt.Sprintf("does not tell its role and process, so that WithStrictNodes knows only its clock%s", refusing(s)), "allow INFO")
		} else if s.Refused != nil {
			r.add(Notice, n.name, fmt.Sprintf("does not tell everything: %v", s.Refused), "allow INFO and CONFIG GET, or see for yourself what this report would have said")
		}
		if s.Role != "" && s.Role != "master" {
			r.add(Critical, n.name, fmt.Sprintf("is a %s", s.Role), "use servers that are independent of each other: what a replica has may go with its master").unfit = true
		}
		if s.Replicas > 0 {
			r.add(Warning, n.name, fmt.Sprintf("has replicas (%d)", s.Replicas), "do not fail over to one: it may lack locks that were granted").about = "replicas"
		}
		if s.MaxMemory > 0 && s.MaxMemoryPolicy != "noeviction" {
			r.add(Warning, n.name, fmt.Sprintf("drops keys when its memory is full (%s)", s.MaxMemoryPolicy), "set maxmemory-policy noeviction: a lock that is dropped can be taken twice")
		}
		if c.set.crashGuard == 0 && s.RunID != "" && !s.durable() {
			r.add(Warning, n.name, "may forget locks when it crashes and restarts", "set appendonly yes and appendfsync always, or use WithCrashGuard")
		}
	}
}

// checkGuard tells which nodes have no vote because they are young.
func (c *Client) checkGuard(r *findings, nodes []checked, down int) {
	d, young := c.set.crashGuard, 0
	for _, n := range nodes {
		for _, s := range n.infos {
			if s.RunID != "" && s.Uptime < d {
				young++
				r.add(Warning, n.name, fmt.Sprintf("started %v ago, and has no vote until that is %v (WithCrashGuard)", s.Uptime, d), "wait")
				break
			}
		}
	}
	if left := len(c.lanes) - down - young; young > 0 && left < quorum.Size(len(c.lanes)) {
		r.add(Critical, "", fmt.Sprintf("%d of %d nodes have a vote, %d are needed", max(left, 0), len(c.lanes), quorum.Size(len(c.lanes))), "nobody can take a lock until the others are old enough")
	}
}

// checkDuplicates looks for a server behind two nodes: it would have two votes.
func checkDuplicates(r *findings, nodes []checked) {
	first := make(map[string]string)
	for _, n := range nodes {
		for _, s := range n.infos {
			switch other, twice := first[s.RunID]; {
			case s.RunID == "":
			case twice:
				r.add(Critical, n.name, fmt.Sprintf("is the same server as node %q", other), "give each server once: its failure would cost two votes").unfit = true
			default:
				first[s.RunID] = n.name
			}
		}
	}
}

// checkClocks compares each server's clock with the median, which a minority of
// bad clocks does not move. It reports whether the readings tell that a clock is right.
func (c *Client) checkClocks(r *findings, nodes []checked) bool {
	type reading struct {
		node             string
		offset, accuracy time.Duration
	}
	var all []reading
	for _, n := range nodes {
		for _, s := range n.infos {
			if !s.Time.IsZero() {
				all = append(all, reading{n.name, s.Offset, s.Accuracy})
			}
		}
	}
	const tolerated = bucket * time.Microsecond // above that, fencing takes more round trips
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b reading) int { return cmp.Compare(a.offset, b.offset) })
	if n := len(all); n < 3 { // of two that differ nobody knows which is right
		return n == 2 && sorted[1].offset-sorted[0].offset <= tolerated+all[0].accuracy+all[1].accuracy
	}
	median := sorted[(len(sorted)-1)/2]
	for _, a := range all {
		off, accuracy := a.offset-median.offset, a.accuracy+median.accuracy
		if off.Abs() <= tolerated+accuracy {
			continue
		}
		f := r.add(Notice, a.node, fmt.Sprintf("its clock is %v off those of the others", off.Round(time.Millisecond)), "set it right, slowly: a step ahead shortens the lives of keys")
		f.about, f.unfit = "clock", off.Abs() > c.set.clockBound+accuracy
		if f.unfit && c.set.fencing {
			f.Severity, f.Advice = Warning, "set it right, slowly: beyond the clock bound it may refuse to count fencing tokens"
		}
	}
	return true
}
