// Package model searches every run of the fencing protocol, up to a bound, for
// two grants with the same token or with tokens in the wrong order.
//
// The decision of a client is the library's own, [quorum.Agree], in a mirror of
// the count around it (countFenced in fencing.go). What a node does is a mirror
// of the scripts in internal/script, a function for each. All else is up to an
// adversary:
//
//   - Attempts begin at any time.
//   - A command is carried out at any time after it was sent, or never. So is a
//     late copy of each acquire, and any number of copies of a raise. Commands
//     stay under way when the attempt has long ended.
//   - A reply arrives at any time, or never.
//   - A lock expires, is deleted or is evicted at any time.
//   - Where the model has a clock, a node may crash and come back with any older
//     counter, and some nodes may be slow.
//
// # What is left out
//
// Each of these leaves runs in, and none out:
//
//   - The end of an attempt. One that ends is one whose replies stay under way.
//   - Votes against. They only end an attempt.
//   - Releases. They are deletions, which the adversary has.
//   - Tombstones. They keep a late acquire out, and may themselves be evicted.
//   - Renewals. They touch neither counters nor the value of a lock.
//
// What makes the search small leaves out no runs either. An empty lock allows
// nothing but an acquire or rearm, so it is enough if a lock goes just before one.
// Replies that decide nothing arrive together with the one that does. Nodes, and
// attempts, are interchangeable: of the states that differ in nothing but their
// order, one is looked at.
//
// # Bounds
//
// The tests search two or three attempts on three to five nodes in some seconds,
// less with -short. There is more for those who have gigabytes and minutes:
//
//	go test ./internal/model -run Clean -v -timeout 0 -model.large
package model
