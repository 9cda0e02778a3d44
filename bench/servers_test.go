// The servers that the benchmarks share, started when they are first needed.

package bench_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/quorumlock/redlock/internal/redisproc"
)

// most is the number of nodes of the largest benchmark.
const most = 5

var servers []*redisproc.Server

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range servers {
		_ = s.Close()
	}
	os.Exit(code)
}

// addrs returns the addresses of n servers. All benchmarks use the same ones, one
// after the other, so that they are compared on equal terms.
func addrs(b *testing.B, n int) []string {
	b.Helper()
	for len(servers) < most {
		s, err := redisproc.Launch(context.Background())
		if errors.Is(err, exec.ErrNotFound) {
			b.Skipf("NOT MEASURED: %v", err)
		}
		if err != nil {
			b.Fatal(err)
		}
		servers = append(servers, s)
	}
	all := make([]string, n)
	for i := range all {
		all[i] = servers[i].Addr()
	}
	return all
}
