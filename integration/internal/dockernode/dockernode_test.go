// What each fault does to a node, and that nothing is left of nodes and networks.

package dockernode

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

func TestNode(t *testing.T) {
	pool := Pool(t)
	var id, network string
	t.Run("faults", func(t *testing.T) {
		n := Start(t, None)[0]
		id, network = n.resource.Container.ID, n.network
		up := func(want bool, after string) {
			t.Helper()
			if err := ping(n.Addr()); (err == nil) != want {
				t.Errorf("after %s: %v, want an answer: %t", after, err, want)
			}
		}
		up(true, "Start")
		n.Pause()
		up(false, "Pause")
		n.Unpause()
		up(true, "Unpause")
		n.Disconnect()
		up(false, "Disconnect")
		n.Connect()
		up(true, "Connect")
		n.Kill()
		up(false, "Kill")
		n.Restart()
		up(true, "Restart")
		n.Pause() // Purge must cope with it
	})
	if id == "" {
		t.Skip("not started")
	}
	if _, err := pool.Client.InspectContainer(id); err == nil {
		t.Error("the container outlived its test")
	}
	if _, err := pool.Client.NetworkInfo(network); err == nil {
		t.Error("the network outlived its test")
	}
}

// TestSweep: what was left behind goes, and what is in use stays.
func TestSweep(t *testing.T) {
	pool := Pool(t)
	left, used := labelled(t, pool, -time.Second), labelled(t, pool, time.Minute)
	sweep(t, pool)
	for _, id := range left {
		if slices.Contains(all(t, pool), id) {
			t.Errorf("%s is still there", id)
		}
	}
	for _, id := range used {
		if !slices.Contains(all(t, pool), id) {
			t.Errorf("%s, which is in use, is gone", id)
		}
	}
}

// labelled makes a network, and a container in it that was never started, which are
// in use for d more.
func labelled(t *testing.T, pool *dockertest.Pool, d time.Duration) []string {
	t.Helper()
	labels := map[string]string{label: strconv.FormatInt(time.Now().Add(d).Unix(), 10)}
	name := "redlock-sweep-" + strings.ReplaceAll(d.String(), "-", "minus") + strconv.FormatInt(time.Now().UnixNano(), 10)
	n, err := pool.Client.CreateNetwork(docker.CreateNetworkOptions{Name: name, Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Client.RemoveNetwork(n.ID) })
	c, err := pool.Client.CreateContainer(docker.CreateContainerOptions{
		Name:             name,
		Config:           &docker.Config{Image: Image(), Labels: labels},
		NetworkingConfig: &docker.NetworkingConfig{EndpointsConfig: map[string]*docker.EndpointConfig{n.ID: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pool.Client.RemoveContainer(docker.RemoveContainerOptions{ID: c.ID, Force: true, RemoveVolumes: true})
	})
	return []string{n.ID, c.ID}
}

// all returns the IDs of all networks and containers.
func all(t *testing.T, pool *dockertest.Pool) (ids []string) {
	t.Helper()
	networks, err := pool.Client.ListNetworks()
	if err != nil {
		t.Fatal(err)
	}
	containers, err := pool.Client.ListContainers(docker.ListContainersOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		ids = append(ids, n.ID)
	}
	for _, c := range containers {
		ids = append(ids, c.ID)
	}
	return ids
}
