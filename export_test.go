package redlock

// Waiting returns how much the client remembers of those who wait: lines, and who
// stands in the nodes' lines.
func (c *Client) Waiting() int {
	c.crowd.mu.Lock()
	defer c.crowd.mu.Unlock()
	return len(c.crowd.lines) + len(c.crowd.listed)
}

// Queued returns how many commands of a Redis node wait to be sent.
func Queued(n Node) int {
	a := &n.(*redisNode).airport
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}
