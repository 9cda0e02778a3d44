// A machine: a clock of its own, and a process on it that may be stopped.

package sim

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/clock"
)

// A machine runs one client and its workers. It is the clock of both.
type machine struct {
	world  *World
	number int
	client *redlock.Client
	rate   float64
	skewed *clock.Skewed
	life   context.Context // ends when it dies
	die    context.CancelFunc

	mu      sync.Mutex
	stopped int           // faults that keep it stopped
	go_     chan struct{} // closed when it goes on; nil while it runs
	stops   int           // times that it was stopped
	slept   time.Duration // since when it is suspended, on the true clock
	drawn   uint64        // numbers of Random in this instant
	drawnAt time.Duration
	tokens  map[string]uint64 // numbers of those that it has drawn
	gaveUp  map[string]int    // releases, by node
}

func newMachine(w *World, number int) *machine {
	m := &machine{world: w, number: number, rate: w.MachineRates[number], gaveUp: map[string]int{}, tokens: map[string]uint64{}}
	m.skewed = clock.NewSkewed(w.truth, clock.Skew{Rate: m.rate, Offset: w.MachineOffsets[number]})
	m.life, m.die = context.WithCancel(context.Background())
	return m
}

// Elapsed, Now, AfterFunc and Random are what the client takes from its machine. A
// timer of a process that is stopped is late.

func (m *machine) Elapsed() time.Duration { return m.skewed.Elapsed() }

func (m *machine) Now() time.Time { return m.skewed.Now() }

func (m *machine) AfterFunc(d time.Duration, f func()) clock.Timer {
	return m.skewed.AfterFunc(d, func() {
		if m.runs() {
			f()
		}
	})
}

func (m *machine) Random() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.world.now(); now != m.drawnAt {
		m.drawn, m.drawnAt = 0, now
	}
	m.drawn++
	return m.world.dice.draw(ofMachines, uint64(m.number), uint64(m.drawnAt), m.drawn)
}

// runs waits while the machine is stopped, and reports whether it is alive.
func (m *machine) runs() bool {
	for m.life.Err() == nil {
		m.mu.Lock()
		wait := m.go_
		m.mu.Unlock()
		if wait == nil {
			return true
		}
		select {
		case <-wait:
		case <-m.life.Done():
		}
	}
	return false
}

func (m *machine) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stops++
	if m.stopped++; m.stopped == 1 {
		m.go_ = make(chan struct{})
	}
}

func (m *machine) goOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped--; m.stopped == 0 {
		close(m.go_)
		m.go_ = nil
	}
}

// still is the rate of a clock that stands still.
const still = 1e-9

// sleep is a stop during which the timers' clock stands still, and wake tells the clock
// that counts suspended time how long that was.
func (m *machine) sleep() {
	m.stop()
	m.skewed.SetRate(still)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slept == 0 {
		m.slept = m.world.now()
	}
}

func (m *machine) wake() {
	m.mu.Lock()
	since := m.slept
	m.slept = 0
	m.mu.Unlock()
	if since > 0 {
		m.skewed.SetRate(m.rate)
		m.skewed.Suspend(time.Duration(float64(m.world.now()-since)*m.rate) + 1)
	}
	m.goOn()
}

// interrupted returns how often it was stopped so far, and whether it is now.
func (m *machine) interrupted() (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stops, m.stopped > 0
}

// dropped notes that the client has given up to release a key on a node, since its life
// is over.
func (m *machine) dropped(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gaveUp[node]++
}

// mayOwe returns how many releases may never have been sent to a node.
func (m *machine) mayOwe(node string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gaveUp[node]
}

// ordinal numbers the tokens of a machine, which are other strings in each run.
func (m *machine) ordinal(value string) uint64 {
	token, _, _ := strings.Cut(value, ".")
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.tokens[token]
	if !ok {
		n = uint64(len(m.tokens))
		m.tokens[token] = n
	}
	return n
}
