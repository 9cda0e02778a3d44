// Whether Docker can be used, and what earlier tests have left there.

package dockernode

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

// localImage is what internal/testimage/build.sh makes.
const localImage = "redlock-redis:local"

// Image returns the image that nodes run, which the environment variable of
// docker-compose.yml sets here too.
func Image() string { return cmp.Or(os.Getenv("REDLOCK_REDIS_IMAGE"), localImage) }

func image() (repository, tag string) {
	repository, tag = Image(), "latest"
	// A colon before a slash is that of a registry's port.
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository, tag = repository[:i], repository[i+1:]
	}
	return repository, tag
}

// Pool returns Docker, or skips or fails the test as [Start] does.
func Pool(t testing.TB) *dockertest.Pool {
	t.Helper()
	pool, err := usable()
	switch {
	case err == nil:
	case Required():
		t.Fatal(err)
	default:
		t.Skipf("NOT TESTED: no containers (REDLOCK_REQUIRE=docker makes this a failure): %v", err)
	}
	return pool
}

// Required reports whether a test must not skip for want of Docker.
func Required() bool {
	return slices.ContainsFunc(strings.Split(os.Getenv("REDLOCK_REQUIRE"), ","),
		func(s string) bool { return strings.TrimSpace(s) == "docker" })
}

func usable() (*dockertest.Pool, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("dockernode: on %s the addresses of containers cannot be reached", runtime.GOOS)
	}
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("dockernode: %w", err)
	}
	if err := pool.Client.Ping(); err != nil {
		return nil, fmt.Errorf("dockernode: Docker does not answer: %w", err)
	}
	// No registry has this one.
	if _, err := pool.Client.InspectImage(localImage); Image() == localImage && err != nil {
		return nil, fmt.Errorf("dockernode: internal/testimage/build.sh makes the image %s: %w", localImage, err)
	}
	return pool, nil
}

// A network is that of one test.
type network struct {
	*docker.Network
	first netip.Addr
}

// address returns the address of node i, beyond those that Docker hands out.
func (n *network) address(i int) string {
	a := n.first.As4()
	a[3] = byte(100 + i)
	return netip.AddrFrom4(a).String()
}

// label says until when, in Unix seconds, a container or network is in use.
const label = "redlock.test.until"

// newNetwork makes a network in which containers may choose their addresses, which
// takes a subnet that was given and not chosen by Docker. But only Docker knows
// which are free: so it chooses one for a network that goes at once.
func newNetwork(t testing.TB, pool *dockertest.Pool) *network {
	t.Helper()
	labels := map[string]string{label: strconv.FormatInt(time.Now().Add(lifetime).Unix(), 10)}
	name := func() string { return fmt.Sprintf("redlock-test-%d-%d", os.Getpid(), time.Now().UnixNano()) }
	var last error
	for range 10 { // somebody else may take the subnet in between
		made, err := pool.Client.CreateNetwork(docker.CreateNetworkOptions{Name: name(), Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		info, err := pool.Client.NetworkInfo(made.ID)
		if err = errors.Join(err, pool.Client.RemoveNetwork(made.ID)); err != nil {
			t.Fatal(err)
		}
		subnet := info.IPAM.Config[0].Subnet
		prefix, err := netip.ParsePrefix(subnet)
		if err != nil {
			t.Fatal(err)
		}
		made, last = pool.Client.CreateNetwork(docker.CreateNetworkOptions{
			Name: name(), Labels: labels,
			IPAM: &docker.IPAMOptions{Config: []docker.IPAMConfig{{Subnet: subnet}}},
		})
		if last == nil {
			made.Labels = labels
			t.Cleanup(func() {
				var err error
				for range 100 { // the engine takes its time to notice that a container has left
					if err = pool.Client.RemoveNetwork(made.ID); err == nil {
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
				t.Error(err)
			})
			return &network{Network: made, first: prefix.Addr()}
		}
	}
	t.Fatal(last)
	return nil
}

// sweep removes what tests that were aborted have left. Others may do the same at
// this moment, so that what is not found is not an error.
func sweep(t testing.TB, pool *dockertest.Pool) {
	t.Helper()
	containers, err := pool.Client.ListContainers(docker.ListContainersOptions{
		All: true, Filters: map[string][]string{"label": {label}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		if over(c.Labels) {
			_ = pool.Client.RemoveContainer(docker.RemoveContainerOptions{ID: c.ID, Force: true, RemoveVolumes: true})
		}
	}
	networks, err := pool.Client.ListNetworks()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		if over(n.Labels) {
			_ = pool.Client.RemoveNetwork(n.ID)
		}
	}
}

// over reports whether something was in use until before now.
func over(labels map[string]string) bool {
	until, err := strconv.ParseInt(labels[label], 10, 64)
	return err == nil && until < time.Now().Unix()
}
