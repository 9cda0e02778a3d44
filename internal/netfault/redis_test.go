// The faults that a lock has to survive, shown on a real server. They double as
// instructions for use.

package netfault_test

import (
	"testing"

	"github.com/quorumlock/redlock/internal/netfault"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// TestLateSet: a SET arrives after the release that was to undo it.
func TestLateSet(t *testing.T) {
	redis := redisproc.Start(t)
	p := netfault.New(t, redis.Addr())
	hold := p.HoldRequests(netfault.Containing("SET"), 0)

	locker := dial(t, p.Addr())
	locker.send(resp("SET", "lock", "token", "NX", "PX", "60000"))
	<-hold.Held()
	locker.Close() // its timeout has passed

	releaser := dial(t, p.Addr())
	releaser.send(resp("DEL", "lock"))
	releaser.want(":0\r\n")

	hold.Release()
	for {
		if got, err := redis.Do("GET", "lock"); err != nil {
			t.Fatal(err)
		} else if got == "token" {
			break
		}
	}
}

// TestLostReply: the SET was executed, and its sender cannot know.
func TestLostReply(t *testing.T) {
	redis := redisproc.Start(t)
	p := netfault.New(t, redis.Addr())
	c := dial(t, p.Addr())
	p.DropReplies(1)
	c.send(resp("SET", "lock", "token", "NX"))
	c.wantEnd("")
	c = dial(t, p.Addr())
	c.send(resp("SET", "lock", "token", "NX"))
	c.want("$-1\r\n")
}

// TestCutAtEachByte: the server executes a whole request and nothing less.
func TestCutAtEachByte(t *testing.T) {
	redis := redisproc.Start(t)
	p := netfault.New(t, redis.Addr())
	request := resp("SET", "lock", "token")
	for n := range len(request) + 1 {
		if _, err := redis.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		p.CutAfter(n)
		c := dial(t, p.Addr())
		c.send(request)
		c.wantEnd("")
		c = dial(t, p.Addr())
		c.send(resp("EXISTS", "none")) // comes after whatever the cut let through
		c.want(":0\r\n")
		want := "(nil)"
		if n == len(request) {
			want = "token"
		}
		if got, err := redis.Do("GET", "lock"); err != nil || got != want {
			t.Errorf("cut after %d of %d bytes: GET = %s, %v, want %s", n, len(request), got, err, want)
		}
	}
}

// TestSilentNode: a paused server is like a black hole, but does its work later.
func TestSilentNode(t *testing.T) {
	redis := redisproc.Start(t)
	p := netfault.New(t, redis.Addr())
	c := dial(t, p.Addr())
	c.send(resp("PING"))
	c.want("+PONG\r\n")
	p.Blackhole(true)
	c.send(resp("SET", "lost", "1"))
	c.wantSilence()
	p.Blackhole(false)

	redis.Pause()
	c = dial(t, p.Addr())
	c.send(resp("SET", "late", "1"))
	c.wantSilence()
	redis.Resume()
	c.want("+OK\r\n")
	if keys := redis.Keys(); len(keys) != 1 || keys[0] != "late" {
		t.Errorf("keys %q, want late only", keys)
	}
}
