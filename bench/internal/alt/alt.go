// Package alt starts the servers of the alternatives to a lock on Redis, from
// Debian's packages: postgresql, etcd-server, zookeeper.
package alt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	startTimeout = time.Minute // a Java program on a loaded machine
	stopTimeout  = 10 * time.Second
	pollInterval = 20 * time.Millisecond
)

// members is the size of a cluster: a majority of three is the least that
// survives a failure, as with Redlock.
const members = 3

// A Group is the servers of one alternative.
type Group struct {
	name     string
	dir      string
	endpoint string
	procs    []*process
}

// Endpoint is where clients connect: addresses, separated by commas.
func (g *Group) Endpoint() string { return g.endpoint }

// Close kills the servers and removes their files.
func (g *Group) Close() error {
	var err error
	for _, p := range g.procs {
		err = errors.Join(err, p.stop())
	}
	return errors.Join(err, os.RemoveAll(g.dir))
}

// newGroup makes the directory of a group.
func newGroup(name string) (*Group, error) {
	dir, err := os.MkdirTemp("", "bench-"+name+"-")
	if err != nil {
		return nil, err
	}
	return &Group{name: name, dir: dir}, nil
}

// run starts a server, whose output goes to a file.
func (g *Group) run(name string, args ...string) error {
	log, err := os.Create(filepath.Join(g.dir, strconv.Itoa(len(g.procs))+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, log, log
	dieWithParent(cmd)
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux kills the child when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // only that it has ended matters
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	g.procs = append(g.procs, p)
	return nil
}

// await asks until ask succeeds, and gives up if a server ends.
func (g *Group) await(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		for i, p := range g.procs {
			select {
			case <-p.ended:
				return fmt.Errorf("%s: server %d ended before it was ready; its log ends:\n%s", g.name, i+1, g.tail(i))
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w; the log ends:\n%s", g.name, ctx.Err(), err, g.tail(0))
		case <-time.After(pollInterval):
		}
	}
}

func (g *Group) tail(i int) string {
	log, err := os.ReadFile(filepath.Join(g.dir, strconv.Itoa(i)+".log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(log[max(0, len(log)-2048):]))
}

type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func (p *process) stop() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("process %d still runs %v after it was killed", p.cmd.Process.Pid, stopTimeout)
	}
}

// freeAddrs returns addresses on which nothing listens. Somebody may take one
// before the server does; then that ends, and its log says why.
func freeAddrs(n int) ([]string, error) {
	var all []string
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		held, all = append(held, l), append(all, l.Addr().String())
	}
	return all, nil
}
