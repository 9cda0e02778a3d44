// The five nodes of docker-compose.yml, started as the README says, and the billing
// example on them.

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ory/dockertest/v3/docker"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/integration/internal/dockernode"
)

// TestCompose starts, uses and removes them.
func TestCompose(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED with -short: docker-compose.yml")
	}
	t.Parallel()
	pool := dockernode.Pool(t)
	base := composeCommand(t)
	sweepCompose(t, pool.Client, base)
	var addrs []string
	for port := 7001; port <= 7005; port++ {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		addrs = append(addrs, addr)
		l, err := net.Listen("tcp", addr)
		switch {
		case err == nil:
			_ = l.Close()
		case dockernode.Required():
			t.Fatal(err)
		default:
			t.Skipf("NOT TESTED: docker-compose.yml, for a port of it is taken (REDLOCK_REQUIRE=docker makes this a failure): %v", err)
		}
	}

	project := fmt.Sprintf("%s%d", composeProject, os.Getpid())
	t.Cleanup(func() { run(t, compose(context.Background(), base, project, "down", "-v")) })
	start := time.Now()
	run(t, compose(t.Context(), base, project, "up", "-d"))
	var states []string
	if !eventually(time.Minute, func() bool {
		states = nil
		healthy := 0
		for _, c := range composed(t, pool.Client, project) {
			states = append(states, c.Status)
			if strings.Contains(c.Status, "(healthy)") {
				healthy++
			}
		}
		return healthy == len(addrs)
	}) {
		t.Fatalf("not all nodes are healthy: %q", states)
	}
	t.Logf("five healthy nodes after %v", round(time.Since(start)))
	for _, addr := range addrs {
		checkNode(t, addr)
	}

	billing := exec.CommandContext(t.Context(), "go", "run", "./examples/billing")
	billing.Dir = ".."
	billing.Env = append(os.Environ(), "REDLOCK_NODES="+strings.Join(addrs, ","))
	start = time.Now()
	out := run(t, billing)
	if want := "every invoice was billed exactly once"; !strings.Contains(out, want) {
		t.Errorf("the example does not say that %s:\n%s", want, out)
	}
	t.Logf("the billing example ran for %v", round(time.Since(start)))
}

// checkNode asks a node for what docs/safety.md needs of it.
func checkNode(t *testing.T, addr string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	for key, want := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always"} {
		if got, err := c.ConfigGet(t.Context(), key).Result(); err != nil || got[key] != want {
			t.Errorf("%s: %s is %q, %v; want %q", addr, key, got[key], err, want)
		}
	}
	if role, err := c.Do(t.Context(), "ROLE").Slice(); err != nil || len(role) != 3 || role[0] != "master" {
		t.Errorf("%s: its role is %v, %v", addr, role, err)
	}
}

// composeProject begins the names of the projects of these tests.
const composeProject = "redlocktest"

// composeCommand returns the command of Compose, which is a program of its own or
// a plug-in of docker.
func composeCommand(t *testing.T) []string {
	t.Helper()
	plugin := []string{"docker", "compose"}
	if exec.CommandContext(t.Context(), plugin[0], plugin[1], "version").Run() == nil {
		return plugin
	}
	path, err := exec.LookPath("docker-compose")
	switch {
	case err == nil:
		return []string{path}
	case dockernode.Required():
		t.Fatal(err)
	default:
		t.Skipf("NOT TESTED: docker-compose.yml (REDLOCK_REQUIRE=docker makes this a failure): %v", err)
	}
	return nil
}

func compose(ctx context.Context, base []string, project string, args ...string) *exec.Cmd {
	all := append(base[1:len(base):len(base)], "-p", project)
	cmd := exec.CommandContext(ctx, base[0], append(all, args...)...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "REDLOCK_REDIS_IMAGE="+dockernode.Image())
	return cmd
}

// run returns what a command prints to its standard output.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Errorf("%v: %v\n%s%s", cmd.Args, err, out, exit.Stderr)
		} else {
			t.Errorf("%v: %v", cmd.Args, err)
		}
	}
	return string(out)
}

const composeLabel = "com.docker.compose.project"

func composed(t *testing.T, client *docker.Client, project string) []docker.APIContainers {
	t.Helper()
	containers, err := client.ListContainers(docker.ListContainersOptions{
		All: true, Filters: map[string][]string{"label": {composeLabel + "=" + project}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return containers
}

// sweepCompose removes what a test left that was aborted a while ago: it would have
// the ports for ever, since these containers come back whatever happens.
func sweepCompose(t *testing.T, client *docker.Client, base []string) {
	t.Helper()
	containers, err := client.ListContainers(docker.ListContainersOptions{
		All: true, Filters: map[string][]string{"label": {composeLabel}},
	})
	if err != nil {
		t.Fatal(err)
	}
	swept := make(map[string]bool)
	for _, c := range containers {
		project := c.Labels[composeLabel]
		if strings.HasPrefix(project, composeProject) && !swept[project] && time.Since(time.Unix(c.Created, 0)) > 10*time.Minute {
			swept[project] = true
			run(t, compose(t.Context(), base, project, "down", "-v"))
		}
	}
}
