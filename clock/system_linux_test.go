// System on Linux: that it reads the clocks it says it does.

package clock

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBoottime runs itself in a time namespace whose CLOCK_BOOTTIME alone is
// ahead. On a machine that was never suspended the kernel's clocks are equal, so
// that nothing else would tell if System read the wrong one.
func TestBoottime(t *testing.T) {
	const inside, ahead = "REDLOCK_TEST_BOOTTIME", 100_000 * time.Second
	g := System.(*system).missed
	lead := time.Duration(g.level.Load())
	if os.Getenv(inside) != "" {
		if lead < ahead {
			t.Errorf("CLOCK_BOOTTIME is ahead by %v, want at least %v", lead, ahead)
		}
		return
	}
	if lead < -bootNoise {
		t.Errorf("CLOCK_BOOTTIME is behind CLOCK_MONOTONIC by %v", -lead)
	}

	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(unshare, "--time", "--boottime=100000", "true").CombinedOutput(); err != nil {
		t.Skipf("no time namespaces here: %v %s", err, out)
	}
	cmd := exec.Command(unshare, "--time", "--boottime=100000", os.Args[0], "-test.run=^TestBoottime$")
	cmd.Env = append(os.Environ(), inside+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in the time namespace: %v\n%s", err, out)
	}
}

// TestSystemQuiet: Go's clock and the kernel's, as System reads them, are so
// close that the usual reading needs no second look.
func TestSystemQuiet(t *testing.T) {
	s := newSystem()
	looked := 0
	mono := s.missed.mono
	s.missed.mono = func() time.Duration { looked++; return mono() }
	for range 1000 {
		s.Elapsed()
	}
	if looked > 3*100 {
		t.Errorf("%d readings of CLOCK_MONOTONIC in 1000 calls, want next to none", looked)
	}
}

func TestBoottimeRefused(t *testing.T) {
	const unknown = 99
	if _, err := reading(unknown); err == nil {
		t.Fatal("the kernel knows the clock")
	}
	s := systemWith(unknown)
	if s.missed.noise == bootNoise {
		t.Error("the gap is not the wall clock's")
	}
	before := time.Now()
	a := s.Elapsed()
	time.Sleep(time.Millisecond)
	if got, most := s.Elapsed()-a, time.Since(before); got < time.Millisecond || got > most {
		t.Errorf("%v passed, want 1ms to %v", got, most)
	}
}

func TestReading(t *testing.T) {
	for _, id := range []int32{unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME} {
		a, err := reading(id)
		time.Sleep(time.Millisecond)
		b, err2 := reading(id)
		if err != nil || err2 != nil || b-a < time.Millisecond {
			t.Errorf("clock %d: %v %v, then %v %v", id, a, err, b, err2)
		}
	}
}
