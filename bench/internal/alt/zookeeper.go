// ZooKeeper.

package alt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// jar is where Debian has ZooKeeper. Its manifest names the jars that it needs.
const jar = "/usr/share/java/zookeeper.jar"

// ZooKeeper starts an ensemble of three. If it is not installed, the error is
// exec.ErrNotFound.
func ZooKeeper(ctx context.Context) (s Server, err error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(jar); err != nil {
		return nil, fmt.Errorf("zookeeper: %w: %w", exec.ErrNotFound, err)
	}
	g, err := newGroup("zookeeper")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	addrs, err := freeAddrs(3 * members)
	if err != nil {
		return nil, err
	}
	var ensemble strings.Builder
	for i := range members {
		_, elect, _ := net.SplitHostPort(addrs[2*members+i])
		fmt.Fprintf(&ensemble, "server.%d=%s:%s\n", i+1, addrs[members+i], elect)
	}
	for i := range members {
		if err = g.zooKeeper(java, i, addrs[i], ensemble.String()); err != nil {
			return nil, err
		}
	}
	g.endpoint = strings.Join(addrs[:members], ",")
	return g, g.await(ctx, func(context.Context) error {
		for _, addr := range addrs[:members] {
			if err := serves(addr); err != nil {
				return err
			}
		}
		return nil
	})
}

// zooKeeper starts the server with the index i.
func (g *Group) zooKeeper(java string, i int, addr, ensemble string) error {
	dir := filepath.Join(g.dir, fmt.Sprint("zk", i))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), fmt.Append(nil, i+1), 0o600); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	conf := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=1000\ninitLimit=30\nsyncLimit=10\nmaxClientCnxns=0\nadmin.enableServer=false\n"+
		"4lw.commands.whitelist=srvr\ndataDir=%s\nclientPortAddress=%s\nclientPort=%s\n%s", dir, host, port, ensemble)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	return g.run(java, "-cp", jar, "-Xmx256m", "org.apache.zookeeper.server.quorum.QuorumPeerMain", conf)
}

// serves asks a server whether it is part of a quorum.
func serves(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("srvr")); err != nil {
		return err
	}
	answer, err := io.ReadAll(c)
	if err == nil && !strings.Contains(string(answer), "Mode: ") {
		err = fmt.Errorf("%s says %q", addr, strings.TrimSpace(string(answer)))
	}
	return err
}
