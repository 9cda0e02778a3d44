//go:build unix

// What a measurement costs in processor time.

package bench_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// usage is the processor time that was used so far by this process, which is the
// library under test, and by the servers.
type usage struct{ client, servers time.Duration }

func used(b *testing.B) usage {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	u := usage{client: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	for _, s := range servers {
		info, err := s.Do("INFO", "cpu")
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name != "used_cpu_sys" && name != "used_cpu_user" {
				continue
			}
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			u.servers += time.Duration(seconds * float64(time.Second))
		}
	}
	return u
}

// report adds what was used since to the figures of b. Unlike its times they say
// something on a machine that has other things to do.
func (u usage) report(b *testing.B) {
	b.Helper()
	now := used(b)
	perCycle := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
	b.ReportMetric(perCycle(now.client-u.client), "client-us/op")
	b.ReportMetric(perCycle(now.servers-u.servers), "server-us/op")
}
