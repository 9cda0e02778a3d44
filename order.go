// Who locks again after an unlock does not overtake the release.

package redlock

// maxBehindRelease is how many acquires wait for the releases of one lock on a node.
const maxBehindRelease = 64

// A freeing is a lock that a node is about to be told to let go of.
type freeing struct {
	releases int   // not yet through
	behind   *call // acquires that wait for them, a list
	waiting  int   // its length
}

// free notes that c is going to release a lock that may be there. Until it is through
// the acquires of that lock wait: over another connection they would overtake it, and
// find the lock taken by a holder who is no more.
func (l *lane) free(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freeing == nil {
		l.freeing = make(map[string]freeing)
	}
	f := l.freeing[c.lock()]
	f.releases++
	l.freeing[c.lock()], c.frees = f, true
}

// freed ends that. What has failed does not keep others waiting while it is repeated.
func (c *call) freed() {
	if !c.frees {
		return
	}
	c.frees = false
	l := c.round.hold.client.lanes[c.node]
	l.mu.Lock()
	f := l.freeing[c.lock()]
	if f.releases--; f.releases > 0 {
		l.freeing[c.lock()] = f
		f.behind = nil // they wait for the others
	} else {
		delete(l.freeing, c.lock())
	}
	l.mu.Unlock()
	for c := f.behind; c != nil; {
		next := c.behind
		c.behind = nil
		l.submit(c)
		c = next
	}
}

// waits reports whether j waits for a release, which submits it later. The caller holds
// l.mu.
func (l *lane) waits(j job) bool {
	c, ok := j.(*call)
	if !ok || c.op != opAcquire || len(l.freeing) == 0 {
		return false
	}
	f, ok := l.freeing[c.lock()]
	if !ok || f.waiting == maxBehindRelease {
		return false
	}
	c.behind, f.behind = f.behind, c
	f.waiting++
	l.freeing[c.lock()] = f
	return true
}

func (c *call) lock() string { return c.round.hold.sites[c.node].claim.Lock }
