// A connection to a node without a driver, for the floor.

package peer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // what Redis calls scripts by
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// owedMost bounds the answers that were not read yet. They are those of the
// farthest nodes; the oldest came long ago, so reading it does not wait.
const owedMost = 32

const dialTimeout = 5 * time.Second

var deleteSHA, extendSHA = sha(compareAndDelete), sha(compareAndExpire)

func sha(script string) string {
	sum := sha1.Sum([]byte(script)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

type rawConn struct {
	net.Conn
	node int
	name string
	r    *bufio.Reader
	owed int // answers that were not read
	rtt  time.Duration
}

// dialNode connects, logs in, loads the scripts and finds out how far the node is.
func dialNode(node int, options *redis.Options) (*rawConn, error) {
	full := *options
	c := redis.NewClient(&full) // for the defaults, and for TLS; it dials nothing by itself
	opts := c.Options()
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, err := opts.Dialer(ctx, opts.Network, opts.Addr)
	_ = c.Close()
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", opts.Addr, err)
	}
	raw := &rawConn{Conn: conn, node: node, name: nodeName(opts), r: bufio.NewReader(conn)}
	if err := raw.greet(opts); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("node %s: %w", opts.Addr, err)
	}
	return raw, nil
}

func (c *rawConn) greet(opts *redis.Options) error {
	var commands [][]string
	switch {
	case opts.Username != "":
		commands = append(commands, []string{"AUTH", opts.Username, opts.Password})
	case opts.Password != "":
		commands = append(commands, []string{"AUTH", opts.Password})
	}
	if opts.DB != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(opts.DB)})
	}
	commands = append(commands, []string{"SCRIPT", "LOAD", compareAndDelete}, []string{"SCRIPT", "LOAD", compareAndExpire})
	for _, args := range commands {
		if err := c.do(args...); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	for range 3 { // the first may still wait for the server to wake
		start := time.Now()
		if err := c.do("PING"); err != nil {
			return fmt.Errorf("PING: %w", err)
		}
		c.rtt = time.Since(start)
	}
	return nil
}

func (c *rawConn) do(args ...string) error {
	if err := c.send(appendCommand(nil, args...), time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	reply, err := c.latest()
	if err == nil && bytes.HasPrefix(reply, []byte("-")) {
		err = errors.New(string(reply[1:]))
	}
	return err
}

// send writes a request, whose answer is owed from now on.
func (c *rawConn) send(request []byte, deadline time.Time) error {
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	for c.owed > owedMost {
		if _, err := c.next(); err != nil {
			return err
		}
	}
	_, err := c.Write(request)
	c.owed++
	return err
}

// latest reads the answer to the last request, past those before it.
func (c *rawConn) latest() (reply []byte, err error) {
	for c.owed > 0 && err == nil {
		reply, err = c.next()
	}
	return reply, err
}

// next reads one answer: a line, with what it announces left out. It is valid
// until the next call.
func (c *rawConn) next() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	c.owed--
	line = bytes.TrimRight(line, "\r\n")
	if len(line) > 1 && line[0] == '$' && line[1] != '-' {
		n, err := strconv.Atoi(string(line[1:]))
		if err != nil {
			return nil, fmt.Errorf("reply %q not understood", line)
		}
		_, err = c.r.Discard(n + len("\r\n"))
		return []byte("$"), err
	}
	return line, nil
}

// appendCommand appends a command in the protocol of Redis.
func appendCommand(b []byte, args ...string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, "\r\n"...)
	for _, arg := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(arg)), 10)
		b = append(b, "\r\n"...)
		b = append(b, arg...)
		b = append(b, "\r\n"...)
	}
	return b
}
