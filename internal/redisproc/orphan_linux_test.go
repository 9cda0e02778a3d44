// Servers die with the process that started them, and only with it.

package redisproc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

const parentEnv = "REDISPROC_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		beParent()
	}
	os.Exit(m.Run())
}

// beParent starts a server, tells where, and waits to be killed.
func beParent() {
	s, err := redisproc.Launch(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Addr(), s.Dir())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestDiesWithParent(t *testing.T) {
	redisproc.Start(t) // skips where there is no server
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprintf("paused=%v", paused), func(t *testing.T) {
			parent := exec.Command(exe)
			parent.Env = append(os.Environ(), parentEnv+"=1")
			if _, err := parent.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			addr, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
			if err != nil || dir == "" {
				t.Fatalf("parent says %q, %v", line, err)
			}
			defer os.RemoveAll(filepath.Dir(dir)) // a killed parent cannot
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()

			parent.Process.Kill()
			parent.Wait()
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the server outlives its parent")
			}
		})
	}
}

// TestOutlivesThreads ends every thread that may have started a server.
func TestOutlivesThreads(t *testing.T) {
	redisproc.Start(t) // skips where there is no server
	launched := make(chan *redisproc.Server)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		s, err := redisproc.Launch(t.Context())
		if err != nil {
			t.Error(err)
		}
		launched <- s
	}()
	s := <-launched
	if s == nil {
		return
	}
	defer s.Close()

	// More threads at once than there are idle ones, and then all of them end.
	var locked, ended sync.WaitGroup
	end := make(chan struct{})
	for range 64 {
		locked.Add(1)
		ended.Go(func() {
			runtime.LockOSThread()
			locked.Done()
			<-end
		})
	}
	locked.Wait()
	close(end)
	ended.Wait()

	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if _, err := s.Do("PING"); err != nil {
			t.Fatalf("the server died with a thread of the process that started it: %v", err)
		}
	}
}

func TestPauseStandsStill(t *testing.T) {
	s := redisproc.Start(t)
	for range 100 {
		s.Pause()
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(stat), ") T ") {
			t.Fatalf("after Pause the process is %s", stat)
		}
		s.Resume()
	}
}
