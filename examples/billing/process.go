// A worker as a process: what it reads and says, how it starts and ends.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"
)

// errStop ends a worker whose input has ended: the parent wants it to stop, or
// is gone.
var errStop = errors.New("told to stop")

// stopGrace is how long a worker may take to stop, and after it the parent to
// kill it.
const stopGrace = 3 * time.Second

// workerMain is main for a worker.
func workerMain() int {
	// Ctrl-C and the end of a terminal reach the whole group of processes. When
	// to stop is the parent's to say, so that locks are released.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)

	w := &worker{out: json.NewEncoder(os.Stdout), started: make(chan struct{}), resumed: make(chan struct{}), goOn: make(chan struct{}, 1)}
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(&w.job); err != nil {
		fmt.Fprintf(os.Stderr, "read the job: %v\n", err)
		return 2
	}
	ctx, stop := context.WithCancelCause(context.Background())
	go func() {
		w.obey(in)
		close(w.goOn)
		stop(errStop)
		time.Sleep(stopGrace)
		os.Exit(1) // stuck: an orphan would be worse
	}()

	err := w.run(ctx)
	if err != nil && !errors.Is(err, errStop) {
		w.say(event{Kind: failed, Text: err.Error()})
		return 1
	}
	return 0
}

// obey follows the parent's orders until there are no more.
func (w *worker) obey(in *json.Decoder) {
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return
		}
		switch o {
		case begin:
			close(w.started)
		case hang:
			w.hang.Store(true)
		case resume:
			close(w.resumed)
		case goOn:
			w.goOn <- struct{}{}
		}
	}
}

// run connects, waits for the start and bills until no invoice is open.
func (w *worker) run(ctx context.Context) (err error) {
	clients, err := openNodes(w.Nodes)
	if err != nil {
		return err
	}
	defer closeNodes(clients)
	w.client, err = redlock.New(redlock.Redis(clients...), redlock.WithTTL(w.TTL))
	if err != nil {
		return err
	}
	defer func() { //nolint:contextcheck // Close takes none, and bounds itself
		if err := w.client.Close(); err != nil {
			w.say(event{Kind: note, Text: err.Error()}) // the locks it could not release end by themselves
		}
	}()
	db, err := w.Store.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w.ledger = ledger{db, w.Store.fence()}
	w.rng = rand.New(rand.NewPCG(w.Seed, uint64(w.Worker)))

	w.say(event{Kind: ready})
	select {
	case <-w.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		left, err := w.round(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !left {
			return err
		}
	}
}

func (w *worker) isResumed() bool {
	select {
	case <-w.resumed:
		return true
	default:
		return false
	}
}

func (w *worker) say(e event) {
	e.At, e.Asked = time.Now(), w.asked
	_ = w.out.Encode(e) // a parent that does not read is gone, and the input ends with it
}
