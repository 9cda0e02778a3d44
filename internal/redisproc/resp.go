// A side door into a server: raw commands over a connection of their own.

package redisproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// doTimeout bounds one command, also against a paused server.
const doTimeout = 5 * time.Second

// An Error is an error reply of the server.
type Error string

func (e Error) Error() string { return string(e) }

// Do runs one command over a new connection and returns the reply as text:
// numbers in decimal, "(nil)" for none, the elements of an array one per line.
// An error reply is an [Error]. A server that does not answer costs 5 seconds.
func (s *Server) Do(args ...string) (string, error) {
	reply, err := s.do(args...)
	if err != nil {
		return "", err
	}
	return flatten(reply), nil
}

// Keys returns all keys of database 0, sorted. If the server does not answer,
// the test has failed; a server from [Launch] has no test to fail, so then Keys
// panics.
func (s *Server) Keys() []string {
	reply, err := s.do("KEYS", "*")
	if err != nil {
		if s.report == nil {
			panic(fmt.Sprintf("redisproc: Keys: %v", err))
		}
		s.report(fmt.Errorf("redisproc: Keys: %w", err))
		return nil
	}
	elements, _ := reply.([]any)
	keys := make([]string, len(elements))
	for i, e := range elements {
		keys[i] = flatten(e)
	}
	slices.Sort(keys)
	return keys
}

func (s *Server) do(args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), doTimeout)
	defer cancel()
	c, err := dial(ctx, s.Addr())
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.do(args...)
}

func flatten(reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "(nil)"
	case []any:
		lines := make([]string, len(reply))
		for i, e := range reply {
			lines[i] = flatten(e)
		}
		return strings.Join(lines, "\n")
	default:
		return fmt.Sprint(reply)
	}
}

// A conn speaks RESP2.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(ctx context.Context, addr string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, doTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	return &conn{c, bufio.NewReader(c)}, c.SetDeadline(deadline)
}

// close resets the connection, so that a test that asks a thousand times per
// second does not fill the machine with ports in TIME_WAIT.
func (c *conn) close() {
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func (c *conn) do(args ...string) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("redisproc: empty command")
	}
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := c.Write(b); err != nil {
		return nil, err
	}
	reply, err := c.read()
	if err != nil {
		return nil, err
	}
	if e, ok := reply.(Error); ok {
		return nil, e
	}
	return reply, nil
}

// read reads one reply: a string, an int64, nil, an Error or an []any of these.
func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("redisproc: empty reply")
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+':
		return text, nil
	case '-':
		return Error(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("redisproc: reply %q not understood", line)
	}
	switch {
	case kind == ':':
		return n, nil
	case kind == '$' && n >= 0:
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return string(b[:n]), err
	case kind == '*' && n >= 0:
		elements := make([]any, n)
		for i := range elements {
			if elements[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		return elements, nil
	case (kind == '$' || kind == '*') && n == -1:
		return nil, nil
	}
	return nil, fmt.Errorf("redisproc: reply %q not understood", line)
}
