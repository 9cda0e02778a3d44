// What nodes are asked.

package redlock

type op uint8

const (
	opAcquire op = iota
	opRaise
	opExtend
	opRearm
	opRelease
	opEnlist
	opDelist
)

func (o op) String() string {
	return [...]string{"acquire", "raise", "extend", "rearm", "release", "enlist", "delist"}[o]
}

// bare reports whether o does nothing to the token: no order is to be kept.
func (o op) bare() bool { return o >= opRelease }

// creates reports whether o can set a lock that was not there.
func (o op) creates() bool { return o == opAcquire || o == opRearm }

func (c *call) rank() rank {
	switch c.op {
	case opRelease:
		return ofRelease
	case opAcquire, opEnlist, opDelist:
		return ofAcquire
	default:
		return ofHolder
	}
}

func (c *call) creates() bool { return c.op.creates() }
