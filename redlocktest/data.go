// Looking at a node's keys and changing them, past all faults.

package redlocktest

import (
	"fmt"
	"slices"
	"time"
)

// Get returns the string at key and how long it will stay, negative if it does
// not expire. It reports false if there is no such key, or not a string.
func (n *Node) Get(key string) (value string, ttl time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now().UnixMilli()
	e, ok := n.keys.get(key, now)
	if !ok || e.kind != text {
		return "", 0, false
	}
	return e.value, e.remaining(now), true
}

// Set sets key to value, as another program might, to expire after ttl, which
// is cut to whole milliseconds. Zero means that it does not expire. It panics
// on a ttl that is negative or positive but less than a millisecond.
func (n *Node) Set(key, value string, ttl time.Duration) {
	if ttl < 0 || ttl > 0 && ttl < time.Millisecond {
		panic(fmt.Sprintf("redlocktest: Set with a ttl of %v", ttl))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e := entry{value: value, when: never}
	if ttl > 0 {
		e.when = n.clock.Now().UnixMilli() + ttl.Milliseconds()
	}
	n.keys[key] = e
}

// SetList makes key hold a list, which does not expire. Redis answers a string
// command on it with WRONGTYPE.
func (n *Node) SetList(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys[key] = entry{kind: list, when: never}
}

// Line returns the waiters in the line at key, the first in front, and how long
// they will stay. Without a line there are none.
func (n *Node) Line(key string) (waiters []string, ttl time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now().UnixMilli()
	e, ok := n.keys.get(key, now)
	if !ok || e.kind != queue {
		return nil, 0
	}
	for _, s := range e.line {
		waiters = append(waiters, s.waiter)
	}
	return waiters, e.remaining(now)
}

// Del deletes keys.
func (n *Node) Del(keys ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range keys {
		delete(n.keys, key)
	}
}

// Keys returns the keys that have not expired, sorted: locks, counters,
// tombstones and lines.
func (n *Node) Keys() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now().UnixMilli()
	var keys []string
	for key := range n.keys {
		if _, ok := n.keys.get(key, now); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// FlushAll deletes all keys.
func (n *Node) FlushAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.keys)
}
