// A state of the whole system.

package model

// Room for the largest setting.
const (
	maxNodes    = 5
	maxAttempts = 3
)

// A state is all nodes, all attempts, and what is under way between them.
type state struct {
	nodes    [maxNodes]node
	attempts [maxAttempts]attempt
	now      uint8 // true time, in ticks
	crashes  uint8 // that may still happen
}

// A node is a server, and what each attempt has to do with it.
type node struct {
	lock    uint8 // whose value it has, 1 for the first; 0 if none
	counter uint8
	down    uint8 // ticks until it votes again
	slow    uint8 // 1 if its clock is behind
	calls   [maxAttempts]call
}

// A call is what an attempt has sent to a node, and what it knows of it.
type call struct {
	phase   phase
	sent    uint8 // 1 if the node may carry out an acquire
	counter uint8 // as the attempt last saw it
	target  uint8 // of the latest raise
	reply   uint8 // under way to the attempt
}

type phase uint8

const (
	waiting phase = iota // for a grant
	replied              // a grant is under way
	granted              // the grant has arrived
	raising              // a raise was sent
	raised               // its reply is under way
	dropped              // a raise has failed
)

// An attempt is one client's try to get the lock.
type attempt struct {
	begun   uint8 // 1 if so
	token   uint8 // 0 unless it was granted
	floor   uint8 // the highest token granted before it began
	refused uint8 // the least number that a node would not be raised to; 0 if none
	hint    uint8
}
