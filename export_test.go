package redlock

// Waiting returns how much the client remembers of those who wait: lines, and who
// stands in the nodes' lines.
func (c *Client) Waiting() int {
	c.crowd.mu.Lock()
	defer c.crowd.mu.Unlock()
	return len(c.crowd.lines) + len(c.crowd.listed)
}

// Freeing returns how many locks the client knows to be released on nodes now, and
// Behind how many acquires wait for that.
func (c *Client) Freeing() (n int) {
	c.eachFreeing(func(freeing) { n++ })
	return n
}

func (c *Client) Behind() (n int) {
	c.eachFreeing(func(f freeing) { n += f.waiting })
	return n
}

func (c *Client) eachFreeing(do func(freeing)) {
	for _, l := range c.lanes {
		l.mu.Lock()
		for _, f := range l.freeing {
			do(f)
		}
		l.mu.Unlock()
	}
}

// Queued returns how many commands of a Redis node wait to be sent.
func Queued(n Node) (waiting int) {
	for i := range n.(*redisNode).airports {
		a := &n.(*redisNode).airports[i]
		a.mu.Lock()
		waiting += len(a.waiting)
		a.mu.Unlock()
	}
	return waiting
}
