// An answer in time whatever the nodes do, and one charge for each order.

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

const deadline = time.Second

// A shop is servers with a client each, and one store.
type shop struct {
	t       *testing.T
	cluster *redlocktest.Cluster
	store   *store
	clients []*redlock.Client
}

func newShop(t *testing.T, servers int, takes time.Duration) *shop {
	s := &shop{t: t, cluster: redlocktest.New(5), store: newStore(takes)}
	for range servers {
		client, err := redlock.New(s.cluster.Nodes())
		if err != nil {
			t.Fatal(err)
		}
		s.clients = append(s.clients, client)
	}
	return s
}

func (s *shop) close() {
	for _, c := range s.clients {
		_ = c.Close()
	}
}

// ask asks one server, and checks that it answers in time.
func (s *shop) ask(ctx context.Context, server int) int {
	w := httptest.NewRecorder()
	hangs := time.AfterFunc(10*deadline, func() { _ = s.clients[server].Close() })
	defer hangs.Stop()
	began := time.Now()
	newServer(s.clients[server], s.store, deadline).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders/42/charge", nil))
	if took := time.Since(began); took > deadline {
		s.t.Errorf("%d after %v", w.Code, took)
	}
	return w.Code
}

func (s *shop) charged(want int) {
	s.t.Helper()
	if n := s.store.charges["42"]; n != want {
		s.t.Errorf("charged %d times, want %d", n, want)
	}
}

// TestHandlerOnce: of many who ask at once each has an answer in time, and all together
// one charge. Who comes when it is done gets the receipt.
func TestHandlerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 4, 900*time.Millisecond)
		defer s.close()
		codes := make(map[int]int)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				code := s.ask(t.Context(), i%4)
				mu.Lock()
				codes[code]++
				mu.Unlock()
			})
		}
		wg.Wait()
		t.Log(codes)
		if codes[200] == 0 || codes[200]+codes[409] != 16 {
			t.Errorf("answers: %v", codes)
		}
		if code := s.ask(t.Context(), 3); code != 200 {
			t.Errorf("afterwards: %d", code)
		}
		s.charged(1)
	})
}

// TestHandlerBusy: another has the order in hand for longer than the deadline.
func TestHandlerBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 2, time.Minute)
		defer s.close()
		mutex, err := s.clients[0].NewMutex("order/42")
		if err != nil {
			t.Fatal(err)
		}
		lease, err := mutex.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if code := s.ask(t.Context(), 1); code != http.StatusConflict {
			t.Errorf("answer %d", code)
		}
		_ = lease.Unlock(t.Context())
		if code := s.ask(t.Context(), 1); code != http.StatusServiceUnavailable {
			t.Errorf("a charge that takes too long: answer %d", code)
		}
		s.charged(0)
	})
}

// TestHandlerNodes: no quorum answers at all, or only until the lock is granted.
func TestHandlerNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 2, 100*time.Millisecond)
		defer s.close()
		silent := func(on bool) {
			for i := range 3 {
				s.cluster.Node(i).Blackhole(on)
			}
		}
		silent(true)
		if code := s.ask(t.Context(), 0); code != http.StatusServiceUnavailable {
			t.Errorf("answer %d", code)
		}
		s.charged(0)
		silent(false)
		time.AfterFunc(50*time.Millisecond, func() { silent(true) }) // the release has no answer
		if code := s.ask(t.Context(), 0); code != http.StatusOK {
			t.Errorf("answer %d", code)
		}
		silent(false)
		s.charged(1)
		time.Sleep(time.Minute)
		if code := s.ask(t.Context(), 1); code != http.StatusOK {
			t.Errorf("later: answer %d", code)
		}
		s.charged(1)
	})
}

// TestHandlerPaused: the nodes forget the lock in the middle of a charge, which stands
// for a holder that is paused until its lease is over. Another charges meanwhile, and the
// store refuses the first.
func TestHandlerPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 2, 500*time.Millisecond)
		defer s.close()
		var first, second int
		var wg sync.WaitGroup
		wg.Go(func() { first = s.ask(t.Context(), 0) })
		time.Sleep(300 * time.Millisecond)
		for i := range s.cluster.Len() {
			s.cluster.Node(i).Del("lock:order/42")
		}
		wg.Go(func() { second = s.ask(t.Context(), 1) })
		wg.Wait()
		if first != http.StatusServiceUnavailable || second != http.StatusOK {
			t.Errorf("answers %d and %d", first, second)
		}
		s.charged(1)
	})
}
