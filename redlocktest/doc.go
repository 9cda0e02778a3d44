// Package redlocktest is a set of Redis nodes in memory, for tests of code that
// uses redlock.
//
//	cluster := redlocktest.New(5)
//	client, err := redlock.New(cluster.Nodes())
//	...
//	cluster.Node(0).Refuse(true)              // the first node is down,
//	cluster.Node(1).Blackhole(true)           // the second does not answer,
//	cluster.Node(2).Clock().Step(time.Minute) // and the clock of the third jumps
//
// A [Node] answers as a Redis server does that runs the scripts of redlock: it
// keeps expiries in milliseconds of its own wall clock, and compares them with
// that clock as Redis does. A test of the package runs random commands on both
// and compares the answers.
//
// Everything works inside a bubble of testing/synctest, where time is fake: a
// node has no goroutine of its own, and none is left when its calls are done.
// A lock call returns when a quorum has answered, and commands to the other nodes
// may still be on their way: call synctest.Wait before a node is looked at or
// restarted.
//
// All methods are safe for concurrent use.
//
// # Faults
//
// Faults are switched on and off while calls run. Each call meets them in the
// order in which a command would on its way to a server and back:
//
//   - [Node.Refuse]: the connection is refused;
//   - [Node.Late]: the command is held up until its caller has given up;
//   - [Node.Delay]: it takes time to reach the node, and the reply to come back;
//   - [Node.Blackhole]: nothing gets through;
//   - [Node.Pause]: the process is stopped, and what arrives waits for it;
//   - [Node.FailWith]: the server answers with an error;
//   - [Node.LoseReplies], [Node.DropReplies]: it executes the command, but the
//     reply is lost;
//   - [Node.DropWakes]: it tells the first in a line, which does not hear of it.
//
// [Node.Restart] ends the process and starts another, and [Node.Heal] switches
// every fault off. A node that is down is one that refuses connections after a
// Restart.
package redlocktest
