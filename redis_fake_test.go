// What real servers seldom say: a server that speaks just enough RESP to be asked
// for a lock, and gives one answer to everything.

package redlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestRedisLoading: what a server says while it reads its data from disk, and
// answers that make no sense.
func TestRedisLoading(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"LOADING":    "-LOADING Redis is loading the dataset in memory\r\n",
		"BUSY":       "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
		"MASTERDOWN": "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
		"max number": "-ERR max number of clients reached\r\n",
		"nil":        "$-1\r\n",
		"number":     ":1\r\n",
		"foo":        "$3\r\nfoo\r\n",
		"99 0":       "$4\r\n99 0\r\n",
		"too long":   fmt.Sprintf("$100\r\n%s\r\n", strings.Repeat("1", 100)),
		"array":      "*2\r\n$1\r\n1\r\n$1\r\n0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			var fakes []*fakeRedis
			nodes := f.nodes(nil)
			for i := range 2 {
				fakes = append(fakes, startFake(t, answer))
				nodes[i] = redlock.NewRedisNode(fmt.Sprintf("fake-%d", i), dial(t, fakes[i].addr(), nil))
			}
			c := openClient(t, nodes, redlock.WithTTL(4*time.Second), redlock.WithNodeTimeout(300*time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := mutexOf(t, c, "m", redlock.WithMaxAttempts(2)).Lock(ctx)
			is(t, err, redlock.ErrNoQuorum)
			isNot(t, err, redlock.ErrTaken)
			if errs := nodeErrors(t, err); len(errs) != 2 {
				t.Error(err)
			}
			for i, fake := range fakes {
				if n := fake.acquires.Load(); n > 2 || n == 0 {
					t.Errorf("node %d was sent %d acquires in 2 attempts", i, n)
				}
			}
			if !eventually(quick, func() bool { return len(lockKeys(t, f.servers[2])) == 0 }) {
				t.Error("the lock was left on the node that works")
			}
		})
	}
}

// hangUp is the answer of a server that closes the connection instead.
const hangUp = "-"

type fakeRedis struct {
	listener net.Listener
	answer   string // to a script
	acquires atomic.Int64
}

func startFake(t testing.TB, answer string) *fakeRedis {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(t, err)
	t.Cleanup(func() { l.Close() })
	f := &fakeRedis{listener: l, answer: answer}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(c)
		}
	}()
	return f
}

func (f *fakeRedis) addr() string { return f.listener.Addr().String() }

func (f *fakeRedis) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		args, err := readRequest(r)
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		switch strings.ToLower(args[0]) {
		case "hello":
			answer = "-ERR unknown command 'HELLO'\r\n"
		case "evalsha", "eval":
			answer = f.answer
			if isAcquire([]byte(args[1])) {
				f.acquires.Add(1)
			}
			if answer == hangUp {
				return
			}
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// readRequest reads an array of bulk strings.
func readRequest(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q is not a length", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
