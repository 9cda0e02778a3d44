// Who locks again after an unlock does not overtake the release.

package redlock

import (
	"time"

	"github.com/quorumlock/redlock/clock"
)

// So many acquires wait for the releases of one lock on a node, and for one part in
// maxWait of their time at most: a node that is far away, or has not answered one
// command, must have its vote all the same.
const (
	maxBehindRelease = 64
	maxWait          = 8
)

// A freeing is a lock that a node is about to be told to let go of.
type freeing struct {
	releases int       // not yet through
	since    time.Time // of the first
	behind   *call     // acquires that wait for them, a list
	waiting  int       // its length
	timer    *time.Timer
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
	f, ok := l.freeing[c.lock()]
	if f.releases++; !ok {
		f.since = clock.System.Now()
	}
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
		l.mu.Unlock()
		return
	}
	delete(l.freeing, c.lock())
	l.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	l.submitList(f.behind)
}

// overdue lets the acquires of a lock go before its releases are through.
func (l *lane) overdue(lock string) {
	l.mu.Lock()
	f, ok := l.freeing[lock]
	if !ok {
		l.mu.Unlock()
		return
	}
	l.client.work.Add(1) // the release keeps it open until now
	defer l.client.work.Done()
	behind := f.behind
	f.behind, f.waiting = nil, 0
	l.freeing[lock] = f
	l.mu.Unlock()
	l.submitList(behind)
}

func (l *lane) submitList(c *call) {
	for c != nil {
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
	left := c.round.patience/maxWait - clock.System.Now().Sub(f.since)
	if left <= 0 {
		return false
	}
	if f.timer == nil {
		lock := c.lock()
		f.timer = time.AfterFunc(left, func() { l.overdue(lock) })
	}
	c.behind, f.behind = f.behind, c
	f.waiting++
	l.freeing[c.lock()] = f
	return true
}

func (c *call) lock() string { return c.round.hold.sites[c.node].claim.Lock }
