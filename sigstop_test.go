//go:build unix

// A holder that is stopped by SIGSTOP for longer than its TTL, as a process of
// its own on real servers: what it notices when it goes on, and how soon.

package redlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

const (
	sigstopEnv = "REDLOCK_TEST_SIGSTOP" // addresses: run as the holder
	sigstopTTL = time.Second
)

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSigstopHolder is the holder, in the process that TestSigstop starts. It
// works without a break and looks at its lease all the time.
func TestSigstopHolder(t *testing.T) {
	addrs := os.Getenv(sigstopEnv)
	if addrs == "" {
		t.Skip("not a test of its own: see TestSigstop")
	}
	var clients []redis.UniversalClient
	for addr := range strings.SplitSeq(addrs, ",") {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: addr}))
	}
	client, err := redlock.New(redlock.Redis(clients...), redlock.WithTTL(sigstopTTL))
	noErr(t, err)
	lease := mustLock(t, mutexOf(t, client, "a"))
	done := lease.Done()
	closed := func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	fmt.Printf("HELD %s\n", lease.Token())

	last := time.Now()
	for {
		// The channel before the clock: a stop between the two is then seen as one.
		ended := closed()
		now := time.Now()
		gap := now.Sub(last)
		last = now
		if gap < sigstopTTL {
			if ended {
				fmt.Printf("ENDED without a stop: %v\n", lease.Err())
				return
			}
			continue
		}
		// Just woken up. This is the first Err since.
		used := cpu()
		err := lease.Err()
		ctxErr := lease.Context().Err()
		for !closed() && time.Since(now) < 10*time.Second {
		}
		fmt.Printf("WOKEN gap=%v first=%v context=%v wall=%v cpu=%v\n", gap.Round(time.Millisecond), err, ctxErr, time.Since(now), cpu()-used)
		break
	}
	// The same for one who only waits for the channel is measured by the next
	// stop. Here the holder does what holders do when they go on.
	fmt.Printf("EXTEND %v\n", lease.Extend(context.Background()))
	fmt.Printf("UNLOCK %v\n", lease.Unlock(context.Background()))
	time.Sleep(2 * sigstopTTL) // renewals, if there were any, would come now
	fmt.Printf("CLOSE %v\n", client.Close())
	os.Stdout.Sync()
}

// TestSigstopWaiter is a holder that does not ask its lease anything, but works on
// and looks whether the channel is closed.
func TestSigstopWaiter(t *testing.T) {
	addrs := os.Getenv(sigstopEnv + "_WAITER")
	if addrs == "" {
		t.Skip("not a test of its own: see TestSigstop")
	}
	var clients []redis.UniversalClient
	for addr := range strings.SplitSeq(addrs, ",") {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: addr}))
	}
	client, err := redlock.New(redlock.Redis(clients...), redlock.WithTTL(sigstopTTL))
	noErr(t, err)
	lease := mustLock(t, mutexOf(t, client, "a"))
	done := lease.Done()
	fmt.Printf("HELD %s\n", lease.Token())
	last, woken, used := time.Now(), time.Time{}, time.Duration(0)
	for {
		now := time.Now()
		if now.Sub(last) > sigstopTTL && woken.IsZero() {
			woken, used = now, cpu()
		}
		last = now
		select {
		case <-done:
			if woken.IsZero() {
				woken = now
				used = cpu()
			}
			fmt.Printf("WOKEN wall=%v cpu=%v\n", time.Since(woken), cpu()-used)
			return
		default:
		}
	}
}

// A child is a holder process, and what it prints.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string
}

func startChild(t *testing.T, test, env, addrs string) *child {
	t.Helper()
	exe, err := os.Executable()
	noErr(t, err)
	cmd := exec.Command(exe, "-test.run=^"+test+"$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), env+"="+addrs)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	noErr(t, err)
	out, err := cmd.StdoutPipe()
	noErr(t, err)
	noErr(t, cmd.Start())
	c := &child{t: t, cmd: cmd, in: in, lines: make(chan string, 100)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // also if it is stopped
		_ = cmd.Wait()
	})
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	return c
}

// expect waits for the line that begins with word, and returns the rest of it.
func (c *child) expect(word string) string {
	c.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the holder ended before %s", word)
			}
			if rest, ok := strings.CutPrefix(line, word+" "); ok {
				return rest
			}
			if strings.HasPrefix(line, "ENDED") {
				c.t.Fatal(line)
			}
		case <-timeout:
			c.t.Fatalf("no %s from the holder", word)
		}
	}
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	noErr(c.t, c.cmd.Process.Signal(s))
}

// spent reads a duration after "name=" in a line.
func spent(t *testing.T, line, name string) time.Duration {
	t.Helper()
	_, rest, _ := strings.Cut(line, name+"=")
	word, _, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(word)
	noErr(t, err)
	return d
}

func TestSigstop(t *testing.T) {
	f := startFleet(t, 5)
	var addrs []string
	for i := range f.servers {
		addrs = append(addrs, f.addr(i))
	}
	for _, c := range []struct{ test, env string }{
		{"TestSigstopHolder", sigstopEnv},
		{"TestSigstopWaiter", sigstopEnv + "_WAITER"},
	} {
		t.Run(c.test, func(t *testing.T) {
			holder := startChild(t, c.test, c.env, strings.Join(addrs, ","))
			token := holder.expect("HELD")
			time.Sleep(3 * sigstopTTL) // it lives by its renewals
			if value, err := f.servers[0].Do("GET", "lock:a"); err != nil || value != token+".0" {
				t.Fatalf("the holder does not hold the lock: %q, %v", value, err)
			}
			holder.signal(syscall.SIGSTOP)
			stopped := time.Now()
			rival := openClient(t, f.nodes(nil), redlock.WithTTL(time.Minute), redlock.WithoutRenewal())
			next := mustLock(t, mutexOf(t, rival, "a"))
			t.Logf("somebody else had the lock %v after the stop", time.Since(stopped))
			time.Sleep(max(2*sigstopTTL-time.Since(stopped), 0))
			// When the rival's keys expire, on the nodes that the stopped holder's
			// key had left by then.
			life := make(map[int]time.Time)
			for i, s := range f.servers {
				if value, err := s.Do("GET", "lock:a"); err == nil && value == fmt.Sprintf("%s.%d", next.Token(), i) {
					life[i] = expiry(t, s.Do)
				}
			}
			if len(life) <= len(f.servers)/2 {
				t.Fatalf("the new holder has keys on %d nodes", len(life))
			}
			holder.signal(syscall.SIGCONT)

			woken := holder.expect("WOKEN")
			t.Log(woken)
			// Processor time, not the wall's: how long others kept the machine busy
			// meanwhile is not the point.
			if d := spent(t, woken, "cpu"); d > 20*time.Millisecond {
				t.Errorf("its code ran on for %v before the context was done", d)
			}
			if c.env == sigstopEnv {
				for _, want := range []string{"first=redlock: \"a\": lease is lost: validity has expired", "context=context canceled"} {
					if !strings.Contains(woken, want) {
						t.Errorf("the holder said %q, which lacks %q", woken, want)
					}
				}
				for _, step := range []string{"EXTEND", "UNLOCK"} {
					if got := holder.expect(step); !strings.Contains(got, redlock.ErrNotHeld.Error()) {
						t.Errorf("%s: %s", step, got)
					}
				}
				if got := holder.expect("CLOSE"); got != "<nil>" {
					t.Errorf("CLOSE: %s", got)
				}
			}
			noErr(t, next.Err())
			for i := range life {
				s := f.servers[i]
				if value, err := s.Do("GET", "lock:a"); err != nil || value != fmt.Sprintf("%s.%d", next.Token(), i) {
					t.Errorf("node %d: the new holder's key is now %q, %v", i, value, err)
				}
				if d := expiry(t, s.Do).Sub(life[i]).Abs(); d > 200*time.Millisecond {
					t.Errorf("node %d: the life of the new holder's key has moved by %v", i, d)
				}
			}
			mustUnlock(t, next)
		})
	}
}

// expiry returns when a server's lock expires.
func expiry(t *testing.T, do func(...string) (string, error)) time.Time {
	t.Helper()
	now := time.Now()
	ms, err := do("PTTL", "lock:a")
	noErr(t, err)
	left, err := time.ParseDuration(ms + "ms")
	noErr(t, err)
	return now.Add(left)
}
