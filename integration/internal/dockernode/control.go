// What a test does to a node that runs.

package dockernode

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ory/dockertest/v3/docker"
)

// Pause stops the node's processes. The kernel goes on accepting connections and
// bytes for it.
func (n *Node) Pause() {
	n.t.Helper()
	n.report("pause", n.pool.Client.PauseContainer(n.resource.Container.ID))
}

// Unpause lets them run on, and execute what has arrived.
func (n *Node) Unpause() {
	n.t.Helper()
	n.report("unpause", n.pool.Client.UnpauseContainer(n.resource.Container.ID))
}

// Kill kills the node (SIGKILL) and waits until it is gone.
func (n *Node) Kill() {
	n.t.Helper()
	id := n.resource.Container.ID
	err := n.pool.Client.KillContainer(docker.KillContainerOptions{ID: id, Signal: docker.SIGKILL})
	if err == nil {
		_, err = n.pool.Client.WaitContainer(id)
	}
	n.report("kill", err)
}

// Restart starts a node that was killed, with what it has on disk, and waits until
// it answers.
func (n *Node) Restart() {
	n.t.Helper()
	err := n.pool.Client.StartContainer(n.resource.Container.ID, nil)
	if err == nil {
		err = errors.Join(n.expire(), n.ready())
	}
	n.report("restart", err)
}

// Disconnect takes the node off the network. What is sent to it gets lost.
func (n *Node) Disconnect() {
	n.t.Helper()
	n.report("disconnect", n.disconnect())
}

// Connect puts the node back on the network, at the address it had, and waits
// until it answers.
func (n *Node) Connect() {
	n.t.Helper()
	n.report("connect", errors.Join(n.connect(), n.ready()))
}

func (n *Node) report(op string, err error) {
	n.t.Helper()
	if err != nil {
		n.t.Errorf("dockernode: %s %s: %v", op, n.addr, err)
	}
}

func (n *Node) disconnect() error {
	return n.pool.Client.DisconnectNetwork(n.network, docker.NetworkConnectionOptions{Container: n.resource.Container.ID})
}

func (n *Node) connect() error {
	return n.pool.Client.ConnectNetwork(n.network, docker.NetworkConnectionOptions{
		Container:      n.resource.Container.ID,
		EndpointConfig: &docker.EndpointConfig{IPAMConfig: &docker.EndpointIPAMConfig{IPv4Address: n.addr}},
	})
}

// ready waits until the node answers. dockertest's own Retry begins with half a
// second.
func (n *Node) ready() error {
	var err error
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = ping(n.Addr()); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no answer within %v: %w", startTimeout, err)
}

func ping(addr string) error {
	const patience = 500 * time.Millisecond
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 64)
	got, err := c.Read(answer)
	if err != nil {
		return err
	}
	if text := string(answer[:got]); text != "+PONG\r\n" {
		return fmt.Errorf("PING is answered with %q", text)
	}
	return nil
}
