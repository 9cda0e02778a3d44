// What some nodes can tell beside the lock: about their server, and what is stored.

package redlock

import (
	"context"
	"time"
)

// A Prober is a [Node] that can tell about its server. [Client.Check] asks it, and
// [WithCrashGuard] rests on it.
type Prober interface {
	Node

	// Probe asks the server about itself, and a cluster each of its masters. What
	// it is not told, for want of rights for instance, it leaves zero; it fails
	// if it is not answered.
	Probe(ctx context.Context) ([]ServerInfo, error)

	// Connections returns a number that changes whenever a connection to a
	// server has been made, before that is used. As long as it is the same as
	// when a Probe began, all answers come from the processes that were probed:
	// no connection outlives the process that it leads to.
	Connections() uint64
}

// A ServerInfo is what a server says about itself.
type ServerInfo struct {
	RunID           string        // of the process, another after each start; empty: not told
	Version         string        // of the server
	Role            string        // "master", or something else
	Replicas        int           // that are connected
	Uptime          time.Duration // of the process, by the server's wall clock, in whole seconds
	MaxMemory       int64         // in bytes, 0 for no limit
	MaxMemoryPolicy string        // what goes when that is reached
	AppendOnly      bool          // there is an append-only file
	AppendFsync     string        // "always", "everysec" or "no"; empty: not told

	Time     time.Time     // the server's wall clock
	Offset   time.Duration // of that to this machine's
	Accuracy time.Duration // of Offset, to either side

	Refused error // why something was not told, if that is so

	_ struct{}
}

// durable reports whether the server has every acknowledged write after a crash.
func (s *ServerInfo) durable() bool { return s.AppendOnly && s.AppendFsync == "always" }

// An Inspector is a [Node] that can tell what is stored for a lock, which
// [Client.Inspect] asks it.
type Inspector interface {
	Node

	// Inspect reads a lock, and the counter at the key fence unless that is
	// empty. It changes nothing.
	Inspect(ctx context.Context, lock, fence string) (LockState, error)
}

// A LockState is what a node stores for a lock.
type LockState struct {
	Held      bool          // there is a value
	Value     string        // that holds it
	Remaining time.Duration // of the life of that; negative if it has no end
	Counter   int64         // the fencing counter, 0 without one

	_ struct{}
}
