// Those who lock: what they do, and the storage they do it to.

package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

// A worker locks, works and unlocks, again and again.
type worker struct {
	world   *World
	machine *machine
	number  int
	drawn   uint64
	mutexes map[string]*redlock.Mutex
}

func newWorker(w *World, m *machine, number int) *worker {
	return &worker{world: w, machine: m, number: number, mutexes: map[string]*redlock.Mutex{}}
}

func (k *worker) id() int { return k.machine.number*k.world.Workers + k.number }

// draw draws the next number of the worker.
func (k *worker) draw() float64 {
	k.drawn++
	return k.world.dice.draw(ofWorkers, uint64(k.id()), k.drawn)
}

func (k *worker) between(low, high time.Duration) time.Duration {
	return low + time.Duration(k.draw()*float64(high-low))
}

// rest waits for d and while the machine is stopped, and reports whether the worker
// lives and has more to do.
func (k *worker) rest(ctx context.Context, d time.Duration) bool {
	wait := make(chan struct{})
	t := k.world.truth.AfterFunc(d, func() { close(wait) })
	defer t.Stop()
	select {
	case <-wait:
	case <-ctx.Done():
	case <-k.machine.life.Done():
	}
	return k.machine.runs() && ctx.Err() == nil
}

func (k *worker) run(ctx context.Context) {
	w := k.world
	for i := range w.Names {
		m, err := k.machine.client.NewMutex(name(i))
		if err != nil {
			panic("sim: " + err.Error())
		}
		k.mutexes[name(i)] = m
	}
	for k.rest(ctx, k.between(0, w.TTL/2)) {
		k.turn(ctx, name(int(k.draw()*float64(w.Names))))
	}
}

// turn is one try to get the lock, and what is done with it.
func (k *worker) turn(ctx context.Context, name string) {
	w, m := k.world, k.mutexes[name]
	var l *redlock.Lease
	var err error
	if k.draw() < .3 {
		k.bounded("TryLock", w.Timeout, func() { l, err = m.TryLock(context.Background()) })
	} else {
		patience := k.between(w.Timeout/2, 3*w.TTL)
		k.bounded("Lock", patience, func() {
			lim, cancel := context.WithCancel(ctx)
			defer cancel()
			defer w.truth.AfterFunc(patience, cancel).Stop()
			l, err = m.Lock(lim)
		})
	}
	if !k.machine.runs() || err != nil {
		return
	}
	h := w.ledger.attach(k, l)
	store := w.stores[name]
	for range 1 + int(k.draw()*3) {
		if !k.rest(ctx, k.between(0, w.TTL/2)) {
			break
		}
		if !w.Renewed && k.draw() < .5 {
			k.bounded("Extend", w.Timeout, func() { err = l.Extend(context.Background()) })
			w.ledger.extended(h, err)
		}
		if l.Err() != nil {
			break
		}
		if w.Fenced {
			k.update(ctx, store, l)
		}
	}
	if !k.machine.runs() {
		return
	}
	unlock, cancel := context.WithCancel(context.Background())
	defer cancel()
	if k.draw() < .2 {
		cancel() // whoever leaves at once: the releases are sent all the same
	}
	left := w.ledger.unlocked(k, h)
	k.bounded("Unlock", w.Timeout, func() { err = l.Unlock(unlock) })
	w.ledger.told(k, h, left, err)
	if l.Err() == nil {
		w.ledger.violate("worker %d: a lease is held after Unlock", k.id())
	}
}

// bounded does f, and checks that it takes no longer than it may, unless the machine
// was stopped meanwhile.
func (k *worker) bounded(what string, most time.Duration, f func()) {
	const slack = 10 * time.Millisecond
	stops, stopped := k.machine.interrupted()
	start := k.world.now()
	f()
	took := k.world.now() - start
	if after, _ := k.machine.interrupted(); after != stops || stopped || k.machine.life.Err() != nil {
		return
	}
	if took > most+slack {
		k.world.ledger.violate("worker %d: %s took %v, and may take %v", k.id(), what, took, most)
	}
}

// update adds one to what is stored, with the token, in two steps: what was read may
// be old when the new is written, and only the token can tell.
func (k *worker) update(ctx context.Context, s *store, l *redlock.Lease) {
	w := k.world
	way := func() time.Duration { return k.between(1, 4*w.Way) }
	var value int
	var err error
	call := w.now()
	if k.rest(ctx, way()) {
		value, err = s.read(l.Name(), l.FencingToken())
		w.ledger.record(Operation{Kind: Read, Worker: k.id(), Name: l.Name(), Token: l.FencingToken(), Value: value, Stale: err != nil, Call: call, Return: w.now()})
	} else {
		return
	}
	if err != nil || !k.rest(ctx, k.between(0, w.TTL/10)) || l.Err() != nil {
		return
	}
	call = w.now()
	// From here on it may be too late, and the storage has to see to it.
	k.rest(context.Background(), way())
	if k.machine.life.Err() != nil {
		return
	}
	err = s.write(l.Name(), l.FencingToken(), value+1)
	w.say("worker %d writes %d to %s with token %d: %v", k.id(), value+1, l.Name(), l.FencingToken(), outcome(err))
	w.ledger.record(Operation{Kind: Write, Worker: k.id(), Name: l.Name(), Token: l.FencingToken(), Value: value + 1, Stale: err != nil, Call: call, Return: w.now()})
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, fence.ErrStale):
		return "refused as stale"
	default:
		return err.Error()
	}
}

// A store is one number, and a guard.
type store struct {
	mu     sync.Mutex
	guard  *fence.Memory
	value  int
	writes int // that were let through
}

func newStore() *store { return &store{guard: fence.NewMemory()} }

func (s *store) read(name string, token int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.guard.Check(context.Background(), name, token); err != nil {
		return 0, err
	}
	return s.value, nil
}

func (s *store) write(name string, token int64, value int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.guard.Check(context.Background(), name, token); err != nil {
		return err
	}
	s.value = value
	s.writes++
	return nil
}
