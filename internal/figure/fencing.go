// A paused holder, and the storage that refuses it.

package main

func fencing() string {
	const (
		a, nodes, b, storage = 70, 130, 190, 262 // lanes
		high                 = 24
		paused, over, awake  = 250, 372, 590
		taken, wrote         = 408, 480
	)
	c := newCanvas(330, "Fencing: a holder that was stopped comes too late",
		"Holder A is stopped after its last look at its lease. The lease ends, B gets the lock with a higher token and writes. When A goes on it writes with its old token, and the storage refuses it.")
	for _, lane := range []struct {
		y    int
		text string
	}{{a, "holder A"}, {nodes, "quorum of nodes"}, {b, "holder B"}, {storage, "storage"}} {
		c.text(16, lane.y+16, "start", "", lane.text)
	}
	c.bar(150, paused, a, high, "lease", "token 33")
	c.bar(paused, awake, a, high, "pause", "")
	c.text((paused+awake)/2, a-6, "middle", "faint", "stopped: the process cannot look at its lease")
	c.bar(awake, awake+90, a, high, "drift", "goes on")

	c.bar(140, over, nodes, high, "key", "")
	c.text((176+over)/2, nodes+16, "middle", "", "A's keys, until their TTL")
	c.bar(taken-8, width-40, nodes, high, "key", "")
	c.text((taken+width-48)/2, nodes+16, "middle", "", "B's keys")
	c.add(`<path d="M%d %dV%d" class="mark"/>`, over-16, a, storage-18) // before the keys are
	c.text(over-22, nodes+42, "end", "faint", "the lease is over")

	c.bar(taken, width-60, b, high, "other", "token 34")

	c.add(`<rect x="150" y="%d" width="%d" height="%d" rx="2" class="axis"/>`, storage, width-166, high)
	c.text(164, storage+16, "start", "", "highest: 33")
	c.arrow(168, a+high, 168, storage)
	c.text(176, b+16, "start", "faint", "reads, 33: accepted")
	c.arrow(wrote, b+high, wrote, storage)
	c.text(wrote+6, storage-12, "start", "faint", "writes, 34: accepted")
	c.text(wrote+8, storage+16, "start", "", "highest: 34")
	c.arrow(awake+60, a+high, awake+60, storage)
	c.text(width-16, storage+high+18, "end", "bad", "writes, 33: refused (fence.ErrStale)")
	c.time(150, width-16, 312)
	return c.end()
}
