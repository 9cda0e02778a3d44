// Package faultproxy is a network that misbehaves on demand between a client and a
// server on loopback, for tests. It is toxiproxy, run inside the test's process.
//
// What a network does to bytes is toxiproxy's part: latency, silence, resets,
// limits. What happens to single requests is not, because it does not know where
// one ends: to lose the reply to the next command of some kind, to hold one back
// while others pass it, or to see them all, use the library's internal/netfault.
package faultproxy

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A Proxy stands before one server. Its faults apply to connections that exist
// already as well as to new ones.
type Proxy struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// New starts a proxy for the server at target. It stops with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	// The server is where a proxy finds its logger; its API is never served.
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{t: t, proxy: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", target)}
	if err := p.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.proxy.Stop)
	return p
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.proxy.Listen }

// A Direction is one of the two ways through a proxy, in toxiproxy's words.
type Direction string

// The two directions.
const (
	ToServer Direction = "upstream"
	ToClient Direction = "downstream"
)

// Add adds one of toxiproxy's toxics in one direction, with the attributes that
// toxiproxy documents. Of them bandwidth writes to the log of the process.
func (p *Proxy) Add(dir Direction, toxic string, attributes map[string]int64) {
	p.t.Helper()
	order, err := json.Marshal(map[string]any{
		"type": toxic, "stream": dir, "name": toxic + " " + string(dir), "attributes": attributes,
	})
	if err == nil {
		_, err = p.proxy.Toxics.AddToxicJson(bytes.NewReader(order))
	}
	if err != nil {
		p.t.Fatalf("toxic %s: %v", toxic, err)
	}
}

// Silence swallows the bytes of both directions. Connections are accepted and stay
// open: both ends are half-open, as after a cable was cut.
func (p *Proxy) Silence() {
	p.t.Helper()
	p.Mute()
	p.Add(ToServer, "timeout", map[string]int64{"timeout": 0})
}

// Mute swallows only what the server sends: it executes requests but never answers.
func (p *Proxy) Mute() {
	p.t.Helper()
	p.Add(ToClient, "timeout", map[string]int64{"timeout": 0})
}

// Delay makes every round trip longer by d, half of it in each direction.
func (p *Proxy) Delay(d time.Duration) {
	p.t.Helper()
	for _, dir := range []Direction{ToServer, ToClient} {
		p.Add(dir, "latency", map[string]int64{"latency": (d / 2).Milliseconds()})
	}
}

// Heal ends all faults. A connection that was silent closes, because what came next
// on it would be misread.
func (p *Proxy) Heal() { p.proxy.Toxics.ResetToxics(p.t.Context()) }
