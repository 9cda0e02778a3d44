// Noticing that the machine was suspended.

package redlock

import "time"

// watchEvery is how often a client that holds leases looks at the clock.
const watchEvery = 500 * time.Millisecond

// startWatch makes sure that time is watched while anything is held.
func (r *renewer) startWatch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch == nil {
		r.watched = r.client.set.clock.Elapsed()
		r.watch = r.client.set.clock.AfterFunc(watchEvery, r.onWatch)
	}
}

// onWatch looks whether more time has passed than the timers have seen, as it
// has after the machine was suspended. All timers are late by as much, so then
// they are set anew, and leases whose deadlines have passed end.
func (r *renewer) onWatch() {
	now := r.client.set.clock.Elapsed()
	r.mu.Lock()
	late := now - r.watched - watchEvery
	leapt := late > 10*time.Millisecond
	r.watched = now
	if leapt {
		r.armed = false
		r.arm()
	}
	if r.client.holding() {
		r.watch.Reset(watchEvery)
	} else {
		r.watch = nil
	}
	r.mu.Unlock()
	if leapt {
		for _, g := range r.client.held() {
			g.resume()
		}
	}
	r.client.paused(late) // after those have learned it: a logger may be told
}
