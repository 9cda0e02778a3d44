// Releases that have to be repeated.

package redlock

import "time"

// repeat sends a release that got no answer again and again until there is one.
// The caller keeps the client open.
func (l *lane) repeat(c *call) {
	again := &call{op: opRelease, round: c.round, node: c.node, bury: c.bury, owed: c.owed, quiet: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.repeats = append(l.repeats, again)
	if !l.repeating {
		l.repeating = true
		l.client.work.Go(l.repeatAll)
	}
}

// repeatAll sends the oldest release that has no answer, alone, until the node
// gives one: a stalled node is not to be buried in releases as well. Then it
// sends all the others at once.
func (l *lane) repeatAll() {
	const first = 10 * time.Millisecond
	pause := first
	for {
		c := l.oldest()
		if c == nil {
			return
		}
		open := l.client.sleep(pause)
		a := l.try(c)
		switch {
		case a.err == nil || a.Verdict == Forbidden:
			c.finish(a)
			pause = first
			for _, c := range l.takeRepeats() {
				l.submit(c)
			}
		case !open: // closing: that was the last try
			for _, c := range append(l.takeRepeats(), c) {
				if !c.round.hold.clear(c.node) {
					l.abandon(c, a.err)
				}
			}
		default:
			pause = min(2*pause, c.round.hold.set.nodeTimeout/2)
			l.mu.Lock()
			l.repeats = append([]*call{c}, l.repeats...)
			l.mu.Unlock()
		}
	}
}

// try sends c, but waits no longer than the node timeout, whatever the driver
// does.
func (l *lane) try(c *call) answer {
	l.mu.Lock()
	room := l.underWay < maxUnderWay
	if room {
		l.underWay++
	}
	l.mu.Unlock()
	if !room {
		return answer{Reply: Reply{Verdict: Unsent}, err: errOverloaded}
	}
	outcome := make(chan answer, 1)
	l.client.work.Go(func() {
		outcome <- c.send(l.node)
		l.serve(l.next())
	})
	timer := time.NewTimer(c.round.hold.set.nodeTimeout)
	defer timer.Stop()
	select {
	case a := <-outcome:
		return a
	case <-timer.C:
		return answer{err: ErrNodeTimeout}
	}
}

// oldest takes the first release whose key may still be there, and ends those
// before it. If there is none it returns nil and repeating ends.
func (l *lane) oldest() *call {
	for {
		l.mu.Lock()
		c := pop(&l.repeats)
		l.repeating = c != nil
		l.mu.Unlock()
		switch {
		case c == nil:
			return nil
		case c.round.hold.clear(c.node): // as turned out: what it waited for was never sent
		case c.round.hold.expired():
			l.abandon(c, ErrNodeTimeout)
		default:
			return c
		}
	}
}

func (l *lane) takeRepeats() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.repeats
	l.repeats = nil
	return all
}

// abandon is the end of a release that got no answer in the life of its key.
func (l *lane) abandon(c *call, err error) {
	if !c.round.hold.sites[c.node].gaveUp.CompareAndSwap(false, true) {
		return // a lease that was lost is released twice if it is unlocked too
	}
	l.client.abandoned.Add(1)
	l.client.count.dropped.Add(1)
	err = newNodeError(l.node.Name(), opRelease.String(), err)
	if f := l.client.set.trace.CleanupDropped; f != nil {
		f(CleanupDropped{Context: eventContext(c.round.hold.values), Name: c.round.hold.name, Node: l.node.Name(), Err: err})
	}
	l.client.set.logger.Warn("redlock: a key was not released and ends with its TTL",
		"mutex", c.round.hold.name, "node", l.node.Name(), "error", err)
}
