// A bounded queue of bytes that are due at some time.

package netfault

import (
	"sync"
	"time"
)

// queueLimit bounds the bytes of one direction of one connection. A full queue
// holds up its reader, and thereby the sender, as a full socket buffer does.
const (
	queueLimit = 1 << 20
	overhead   = 128 // what a piece costs beside its data
)

// A piece is what was read at once, or a part of it that ends with a request
// that some fault picks out.
type piece struct {
	data      []byte
	due       time.Time
	hold      *Hold
	loseReply bool
	eof       bool // the sender has closed its end; there is no data
}

func (p piece) cost() int { return len(p.data) + overhead }

// A queue has one producer and one consumer.
type queue struct {
	filled, drained chan struct{} // each holds at most one signal

	mu     sync.Mutex
	pieces []piece
	size   int
}

func newQueue() *queue {
	return &queue{filled: make(chan struct{}, 1), drained: make(chan struct{}, 1)}
}

// push appends p as soon as there is room for it. It gives up when stop closes.
func (q *queue) push(p piece, stop <-chan struct{}) {
	for !q.tryPush(p) {
		select {
		case <-q.drained:
		case <-stop:
			return
		}
	}
	signal(q.filled)
}

func (q *queue) tryPush(p piece) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size > 0 && q.size+p.cost() > queueLimit {
		return false
	}
	q.pieces = append(q.pieces, p)
	q.size += p.cost()
	return true
}

// pop removes the first piece, when it is due and not held. It reports false
// when stop closes.
func (q *queue) pop(stop <-chan struct{}) (piece, bool) {
	for {
		p, ok := q.first()
		if ok {
			if !p.wait(stop) {
				return piece{}, false
			}
			q.remove()
			signal(q.drained)
			return p, true
		}
		select {
		case <-q.filled:
		case <-stop:
			return piece{}, false
		}
	}
}

func (q *queue) first() (piece, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pieces) == 0 {
		return piece{}, false
	}
	return q.pieces[0], true
}

func (q *queue) remove() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size -= q.pieces[0].cost()
	q.pieces[0] = piece{}
	q.pieces = q.pieces[1:]
}

// wait waits until the piece may be delivered; false means that stop closed.
func (p piece) wait(stop <-chan struct{}) bool {
	if !sleep(time.Until(p.due), nil, stop) {
		return false
	}
	if p.hold == nil {
		return true
	}
	if p.hold.d > 0 {
		return sleep(time.Until(p.due.Add(p.hold.d)), p.hold.released, stop)
	}
	select {
	case <-p.hold.released:
		return true
	case <-stop:
		return false
	}
}

// sleep waits for d, or until early closes; false means that stop closed.
func sleep(d time.Duration, early, stop <-chan struct{}) bool {
	if d <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-stop:
		return false
	}
	return true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
