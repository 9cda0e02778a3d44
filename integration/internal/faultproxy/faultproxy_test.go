// That each fault does to a client of a real server what it says, and that it ends.

package faultproxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"

	"github.com/quorumlock/redlock/integration/internal/faultproxy"
)

// silence is for how long nothing must come, which is taken for never.
const silence = 150 * time.Millisecond

type client struct {
	*testing.T
	net.Conn
	replies *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{T: t, Conn: c, replies: bufio.NewReader(c)}
}

// send sends a command as a line and returns the first line of its reply.
func (c *client) send(command string, wait time.Duration) (string, error) {
	c.Helper()
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	_ = c.SetReadDeadline(time.Now().Add(wait))
	line, err := c.replies.ReadString('\n')
	return line, err
}

func (c *client) works() {
	c.Helper()
	if line, err := c.send("PING", 10*time.Second); line != "+PONG\r\n" {
		c.Errorf("PING: %q, %v", line, err)
	}
}

// stuck sends a command that gets no reply, on a connection that stays open.
func (c *client) stuck(command string) {
	c.Helper()
	if line, err := c.send(command, silence); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Errorf("%s: %q, %v, want silence", command, line, err)
	}
}

// ends waits for the end of a connection that has nothing more to say.
func (c *client) ends(want error) {
	c.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if b, err := c.replies.ReadByte(); !errors.Is(err, want) {
		c.Errorf("%q, %v, want %v", b, err, want)
	}
}

func get(t *testing.T, s *redisproc.Server, key string) string {
	t.Helper()
	v, err := s.Do("GET", key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSilence(t *testing.T) {
	s := redisproc.Start(t)
	p := faultproxy.New(t, s.Addr())
	before := dial(t, p)
	before.works()
	p.Silence()
	before.stuck("SET lost 1")
	during := dial(t, p)
	during.stuck("SET lost 1")
	if v := get(t, s, "lost"); v != "(nil)" {
		t.Errorf("%q got through", v)
	}
	p.Heal()
	before.ends(io.EOF)
	during.ends(io.EOF)
	dial(t, p).works()
}

func TestMute(t *testing.T) {
	s := redisproc.Start(t)
	p := faultproxy.New(t, s.Addr())
	c := dial(t, p)
	c.works()
	p.Mute()
	c.stuck("SET heard 1")
	if v := get(t, s, "heard"); v != "1" {
		t.Errorf("the server holds %q", v)
	}
}

func TestDelay(t *testing.T) {
	p := faultproxy.New(t, redisproc.Start(t).Addr())
	c := dial(t, p)
	c.works()
	const delay = 300 * time.Millisecond
	p.Delay(delay)
	for _, c := range []*client{c, dial(t, p)} {
		start := time.Now()
		c.works()
		if d := time.Since(start); d < delay {
			t.Errorf("a reply after %v", d)
		}
	}
	p.Heal()
	start := time.Now()
	c.works()
	if d := time.Since(start); d > delay {
		t.Errorf("after the fault a reply took %v", d)
	}
}

func TestToxics(t *testing.T) {
	p := faultproxy.New(t, redisproc.Start(t).Addr())

	p.Add(faultproxy.ToClient, "limit_data", map[string]int64{"bytes": 3})
	c := dial(t, p)
	if line, err := c.send("PING", 10*time.Second); line != "+PO" || !errors.Is(err, io.EOF) {
		t.Errorf("%q, %v, want three bytes and the end", line, err)
	}
	p.Heal()

	p.Add(faultproxy.ToClient, "reset_peer", map[string]int64{"timeout": 0})
	if line, err := dial(t, p).send("PING", 10*time.Second); line != "" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v, want a reset", line, err)
	}
	p.Heal()
	dial(t, p).works()
}
