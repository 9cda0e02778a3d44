// An HTTP handler that does something once for each ID, and answers in time.

package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/quorumlock/redlock"
)

// A handler charges an order once, however often it is asked.
type handler struct {
	client   *redlock.Client
	store    *store
	deadline time.Duration // until it answers
}

// ServeHTTP answers 200 with the receipt, 409 if another request has the order in hand,
// and 503 if nobody knows; to ask again is safe in any case, since the store remembers
// under the lock what is done.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.deadline)
	defer cancel()
	receipt, err := h.charge(ctx, r.PathValue("order"))
	switch {
	case err == nil:
		_, _ = w.Write([]byte(receipt)) // to a client who may have left
	case errors.Is(err, redlock.ErrTaken) && !errors.Is(err, redlock.ErrLost):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "in hand", http.StatusConflict)
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}
}

func (h handler) charge(ctx context.Context, order string) (receipt string, err error) {
	mutex, err := h.client.NewMutex("order/" + order)
	if err != nil {
		return "", err
	}
	lease, err := mutex.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = lease.Unlock(ctx) }() // ctx bounds only the wait; what the store has done is done
	// Until the deadline or the end of the lease, but not of the request: a client who
	// leaves does not stop the work half way.
	deadline, _ := ctx.Deadline()
	working, stop := context.WithDeadline(lease.Context(), deadline)
	defer stop()
	return h.store.charge(working, order, lease.FencingToken()) //nolint:contextcheck // as said
}
