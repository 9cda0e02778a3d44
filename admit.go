// What is said of nodes that are found unfit while they are in use.

package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// How long what a node told holds good, where nothing says that it changed.
const (
	lookAgain = time.Minute
	lookSoon  = time.Second // where one is unfit, or fails

	manyFailures = 3 // in a row are more than a hiccup
)

// An unfitError is why a node has no vote.
type unfitError struct{ problem string }

func (e *unfitError) Error() string {
	return "it has no vote (WithStrictNodes): " + e.problem
}

// A census is what the nodes have told about themselves, and what follows from it.
type census struct {
	mu    sync.Mutex
	nodes []checked // by index; without infos until told
	unfit []error   // by index
	told  map[string]bool

	clocks map[string]findings // by node, until it can be judged again
}

func newCensus(nodes []Node) *census {
	s := &census{unfit: make([]error, len(nodes)), clocks: make(map[string]findings)}
	for _, n := range nodes {
		s.nodes = append(s.nodes, checked{name: n.Name()})
	}
	return s
}

// admit takes what node i has told at the given time, on the client's clock, the
// question having been on its way for as long as took, or nothing if it has not; and
// why it gives no votes, if that is so. It judges all nodes anew, as Check does, and
// returns what is new.
func (c *Client) admit(i int, infos []ServerInfo, failure error, now, took time.Duration) (fresh findings) {
	read := make([]ServerInfo, len(infos))
	for j, s := range infos {
		// Against the client's clock: this machine's may be stepped between two
		// looks, and then all nodes would seem to differ.
		s.Offset, s.Accuracy = time.Duration(s.Time.UnixNano())-now, took
		read[j] = s
	}
	s := c.census
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(read) > 0 {
		s.nodes[i].infos, s.nodes[i].at = read, now
	}
	s.nodes[i].failure = failure
	r := &findings{}
	var lately []checked // clocks drift apart, and so does a reading from what it was of
	for _, n := range s.nodes {
		c.checkServer(r, n)
		if n.failure != nil {
			r.add(Warning, n.name, fmt.Sprintf("gives no votes: %v", n.failure), "as long as that is so, fewer of the others may fail").about = "votes"
		}
		if now-n.at <= 2*lookAgain {
			lately = append(lately, n)
		}
	}
	checkDuplicates(r, s.nodes)
	var clocks findings
	if c.checkClocks(&clocks, lately) { // else what was found before stands
		for _, n := range lately {
			delete(s.clocks, n.name)
		}
		for _, f := range clocks {
			s.clocks[f.Node] = append(s.clocks[f.Node], f)
		}
	}
	for _, n := range s.nodes {
		*r = append(*r, s.clocks[n.name]...)
	}
	clear(s.unfit)
	told := make(map[string]bool)
	for _, f := range *r {
		for k, n := range s.nodes {
			if f.unfit && n.name == f.Node {
				s.unfit[k] = &unfitError{f.Problem}
			}
		}
		key := fmt.Sprint(f.Node, f.Severity, f.about)
		if !s.told[key] && !told[key] {
			fresh = append(fresh, f)
		}
		told[key] = true
	}
	s.told = told
	return fresh
}

func (c *Client) logFindings(r findings) {
	for _, f := range r {
		level := slog.LevelWarn
		if f.Severity == Critical {
			level = slog.LevelError
		}
		c.set.logger.Log(context.Background(), level, "redlock: a node is not as it should be",
			"node", f.Node, "problem", f.Problem, "advice", f.Advice)
	}
}

// unfitness returns why node i has no vote, or nil, and whether there is any node of
// which that is to be said. What others told may be what is out of date then.
func (c *Client) unfitness(i int) (err error, some bool) {
	s := c.census
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unfit[i], slices.ContainsFunc(s.unfit, func(err error) bool { return err != nil })
}
