// Who locks again after an unlock does not overtake the release.

package redlock

import (
	"time"

	"github.com/quorumlock/redlock/clock"
)

// So many acquires wait for the release of one lock on a node, and for one part in
// maxWait of their time at most: a node that is far away, or has not answered one
// command, must have its vote all the same.
const (
	maxKeptBack = 64
	maxWait     = 8
)

// A freeing is a lock that a node is about to be told to let go of.
type freeing struct {
	release *call     // the latest; it waits for no earlier one, whose lease ended before
	since   time.Time // when that was asked for
	behind  *call     // acquires that wait for it, a list
	waiting int       // its length
	timer   *time.Timer
	due     time.Time // when timer lets them go
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
	f.release, f.since = c, clock.System.Now()
	l.freeing[c.lock()] = f
}

// freed ends that. What has failed does not keep others waiting while it is repeated.
func (l *lane) freed(c *call) {
	l.mu.Lock()
	f := l.freeing[c.lock()]
	if f.release != c {
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

// overdue lets the acquires of a lock go before its release is through.
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
	f.behind, f.waiting, f.timer = nil, 0, nil
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
	if !ok || f.waiting == maxKeptBack {
		return false
	}
	due := f.since.Add(c.round.patience / maxWait)
	left := due.Sub(clock.System.Now())
	if left <= 0 {
		return false
	}
	switch {
	case f.timer == nil:
		lock := c.lock()
		f.timer, f.due = time.AfterFunc(left, func() { l.overdue(lock) }), due
	case due.Before(f.due): // a mutex with a shorter node timeout
		f.timer.Reset(left)
		f.due = due
	}
	c.behind, f.behind = f.behind, c
	f.waiting++
	l.freeing[c.lock()] = f
	return true
}

func (c *call) claim() *Claim { return &c.round.hold.sites[c.node].claim }

func (c *call) lock() string { return c.claim().Lock }
