// Connections that break in the middle of a lock command, or that carry it badly.

package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/integration/internal/faultproxy"
)

// broken are the toxics that end connections. What is on its way is lost, or was
// executed and nobody hears of it.
var broken = map[string]func(p *faultproxy.Proxy){
	"close after write": func(p *faultproxy.Proxy) { p.Add(faultproxy.ToClient, "reset_peer", nil) },
	"reset":             func(p *faultproxy.Proxy) { p.Add(faultproxy.ToServer, "reset_peer", nil) },
	"half a reply":      func(p *faultproxy.Proxy) { p.Add(faultproxy.ToClient, "limit_data", map[string]int64{"bytes": 7}) },
	"half a request":    func(p *faultproxy.Proxy) { p.Add(faultproxy.ToServer, "limit_data", map[string]int64{"bytes": 100}) },
	"silence, then end": func(p *faultproxy.Proxy) { p.Add(faultproxy.ToClient, "timeout", map[string]int64{"timeout": 40}) },
}

// Hazards 11, 12 and 17: with a minority of nodes nobody notices. With a majority it
// is no quorum, and never a lock that is taken; what the nodes executed all the same
// is released when they can be reached.
func TestProxyBroken(t *testing.T) {
	t.Parallel()
	const nodeTimeout = time.Second
	r := newRig(t, 5)
	for name, fault := range broken {
		p := r.network()
		c := r.open(p.addrs(), redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(nodeTimeout))
		fault(p[0])
		fault(p[4])
		for i := range 5 {
			m := mutexOf(t, c, fmt.Sprint(name, i))
			var l *redlock.Lease
			prompt := (&fleet{T: t}).prompt
			prompt("TryLock", func() (err error) { l, err = m.TryLock(t.Context()); return err })
			if l == nil {
				t.FailNow()
			}
			prompt("Extend", func() error { return l.Extend(t.Context()) })
			prompt("Unlock", func() error { return l.Unlock(t.Context()) })
		}
		fault(p[2]) // over a connection that has worked until now
		_, err := mutexOf(t, c, name).TryLock(t.Context())
		is(t, err, redlock.ErrNoQuorum)
		isNot(t, err, redlock.ErrTaken)
		if name == "close after write" && r.value(2, "lock:"+name) == "(nil)" {
			t.Errorf("%s: the node did not execute the acquire", name)
		}
		heal(p)
		r.free("lock:"+name, 2*nodeTimeout+quick)
		r.unlock(r.lock(mutexOf(t, c, name)))
	}
}

// What a network may do to the bytes as long as all arrive is nobody's business.
func TestProxyClumsy(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	p := r.network()
	c := r.open(p.addrs(), redlock.WithTTL(20*time.Second), redlock.WithNodeTimeout(5*time.Second))
	for _, dir := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient} {
		for i := range p {
			p[i].Add(dir, "slicer", map[string]int64{"average_size": 5, "size_variation": 4, "delay": 20})
			p[i].Add(dir, "slow_close", map[string]int64{"delay": 100})
		}
	}
	for i := range 20 {
		l, err := mutexOf(t, c, fmt.Sprint("m", i)).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		r.unlock(l)
	}
	r.free("lock:", 10*time.Second)
}
