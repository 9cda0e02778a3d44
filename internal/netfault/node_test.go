// Faults of whole nodes: silent, unreachable, far away.

package netfault_test

import (
	"errors"
	"net"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/netfault"
)

func TestBlackhole(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	old, untouched := dial(t, p.Addr()), dial(t, p.Addr())
	old.ask("a\n")
	untouched.ask("b\n")

	p.Blackhole(true)
	fresh, freshUntouched := dial(t, p.Addr()), dial(t, p.Addr())
	old.send("c\n")
	fresh.send("d\n")
	old.wantSilence()
	fresh.wantSilence()
	s.wantReceived(t, "a\nb\n")

	p.Blackhole(false)
	old.send("e\n") // would be taken for the rest of a request that was lost
	old.wantSilence()
	fresh.send("f\n")
	fresh.wantSilence()
	untouched.ask("g\n")
	freshUntouched.ask("h\n")
	dial(t, p.Addr()).ask("i\n")
	s.wantReceived(t, "a\nb\ng\nh\ni\n")
}

func TestBlackholeHidesDeath(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	old := dial(t, p.Addr())
	old.ask("a\n")
	p.Blackhole(true)
	s.Close()
	s.closeConns()
	fresh := dial(t, p.Addr())
	fresh.send("b\n")
	fresh.wantSilence()
	old.wantSilence()
}

func TestMute(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	old, untouched := dial(t, p.Addr()), dial(t, p.Addr())
	old.ask("a\n")
	p.Mute(true)
	old.send("b\n")
	s.wantReceived(t, "a\nb\n")
	fresh := dial(t, p.Addr())
	fresh.send("c\n")
	s.wantReceived(t, "a\nb\nc\n")
	old.wantSilence()
	fresh.wantSilence()

	p.Mute(false)
	old.send("d\n") // its reply would be taken for the one that was lost
	s.wantReceived(t, "a\nb\nc\nd\n")
	old.wantSilence()
	untouched.ask("e\n")
}

func TestDeafen(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	old, asking, untouched := dial(t, p.Addr()), dial(t, p.Addr()), dial(t, p.Addr())
	old.ask("a\n")
	p.Delay(0, 200*time.Millisecond)
	asking.send("b\n") // is answered after the fault has begun
	s.wantReceived(t, "a\nb\n")
	p.Deafen(true)
	p.Delay(0, 0)
	old.send("c\n")
	asking.want("b\n")
	old.wantSilence()

	p.Deafen(false)
	old.send("d\n") // would be taken for what was lost
	old.wantSilence()
	untouched.ask("e\n")
	s.wantReceived(t, "a\nb\ne\n")
}

func TestRefuse(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	old := dial(t, p.Addr())
	old.ask("a\n")
	for range 3 {
		p.Refuse(true)
		p.Refuse(true)
		old.SetReadDeadline(time.Now().Add(patience))
		if _, err := old.r.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("existing connection: %v, want a reset", err)
		}
		if n := p.Conns(); n != 0 {
			t.Errorf("Conns() = %d after Refuse", n)
		}
		if c, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial = %v, %v, want refused", c, err)
		}
		if l, err := net.Listen("tcp", p.Addr()); err == nil {
			l.Close()
			if runtime.GOOS == "linux" {
				t.Error("somebody else gets the port")
			}
		}
		p.Refuse(false)
		p.Refuse(false)
		old = dial(t, p.Addr())
		old.ask("b\n")
	}
}

// TestRefuseWhileDialing: no connection slips through as the listener closes.
func TestRefuseWhileDialing(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c, err := net.Dial("tcp", p.Addr()); err == nil {
					c.Write([]byte("x\n"))
					defer c.Close()
				}
			}
		})
	}
	for range 100 {
		p.Refuse(true)
		for range 5 {
			if n := p.Conns(); n != 0 {
				t.Fatalf("Conns() = %d while connections are refused", n)
			}
			time.Sleep(100 * time.Microsecond)
		}
		p.Refuse(false)
		time.Sleep(time.Millisecond)
	}
}

func TestDelay(t *testing.T) {
	const there, back = 40 * time.Millisecond, 70 * time.Millisecond
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	c := dial(t, p.Addr())
	c.ask("a\n")
	p.Delay(there, back)
	start := time.Now()
	c.ask("b\n")
	if took := time.Since(start); took < there+back {
		t.Errorf("a round trip took %v, want at least %v", took, there+back)
	}

	// A delay is not a limit of the rate: requests overlap on the way.
	start = time.Now()
	for i := range 100 {
		c.send(strconv.Itoa(i) + "\n")
		time.Sleep(time.Millisecond)
	}
	for i := range 100 {
		c.want(strconv.Itoa(i) + "\n")
	}
	if took := time.Since(start); took > 50*(there+back) {
		t.Errorf("100 overlapping round trips took %v, each %v", took, there+back)
	}

	// What is under way keeps its time and its order.
	c.send("slow\n")
	p.Delay(0, 0)
	c.send("fast\n")
	c.want("slow\nfast\n")
	start = time.Now()
	dial(t, p.Addr()).ask("c\n")
	if took := time.Since(start); took > there {
		t.Errorf("a round trip took %v after the end of the fault", took)
	}
}

// TestDelayOutlivesClient: bytes under way arrive though their sender has left.
func TestDelayOutlivesClient(t *testing.T) {
	s := serve(t)
	p := netfault.New(t, s.Addr().String())
	p.Delay(50*time.Millisecond, 0)
	c := dial(t, p.Addr())
	for i := range 8 { // replies to the first ones find nobody
		c.send(strconv.Itoa(i) + "\n")
		time.Sleep(time.Millisecond)
	}
	c.Close()
	s.wantReceived(t, "0\n1\n2\n3\n4\n5\n6\n7\n")
	s.await(t, func() bool { return s.ended == 1 }, func() { t.Fatal("the server does not see the end") })
}
