// The way to one node: how much is under way there, and what waits.

package redlock

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Bounds of a lane. A node that does not answer must cost neither goroutines nor
// memory without limit, and must not wake up to thousands of commands that nobody
// waits for.
//
// There is no bound for releases: dropping one would leave a key for its TTL. They
// are at most one for each lease and attempt that was sent, and where too many are
// owed no more attempts are sent.
const (
	maxUnderWay = 256   // commands handed to the driver and not yet answered
	maxWaiting  = 1024  // commands of a rank that wait for one of those to end
	maxOwed     = 768   // releases owed to a node that has not answered one
	maxBehind   = 16384 // releases owed to a node that does answer
)

// A lane is a client's way to one node.
type lane struct {
	client *Client
	index  int // of the node
	node   Node
	ferry  ferry // nil if each command goes by itself
	guard  guard
	silent atomic.Bool // it has let a node timeout pass, and said nothing since
	count  nodeCounters

	mu       sync.Mutex
	underWay int
	waiting  [ranks][]job
	turn     int                // of places that became free
	airport  airport            // if there is a ferry
	freeing  map[string]freeing // by lock key

	repeats   []*call // releases without an answer, oldest first
	repeating bool    // a goroutine sees to them
}

func newLane(c *Client, n Node, index int) *lane {
	l := &lane{client: c, node: n, index: index}
	if r, ok := n.(*redisNode); ok && r.plain != nil {
		l.ferry = r // not for a Cluster, where a flight would wait for its slowest shard
	}
	return l
}

// A job is what a lane does: a call, or several that travel together.
type job interface {
	run(n Node)
	drop(err error) // instead of run
	dead() bool     // nobody wants it run any more
	rank() rank     // what it waits behind
	creates() bool  // it may leave something to release
}

// A rank says which of the jobs that wait goes first.
type rank int

const (
	ofHolder  rank = iota // keeps what somebody has, or is about to have
	ofRelease             // lets others in
	ofAcquire
	ranks
)

// submit hands j to the node as soon as there is room. It does not block. The
// caller keeps the client open.
func (l *lane) submit(j job) {
	var dropped []job
	l.mu.Lock()
	queue, bounded := &l.waiting[j.rank()], j.rank() != ofRelease
	room := maxWaiting + maxUnderWay - l.underWay
	if bounded && len(*queue) >= room {
		dropped = sweep(queue)
	}
	c, travels := l.travels(j)
	switch {
	case l.waits(j):
	case j.creates() && l.owes():
		l.client.work.Go(func() { j.drop(errOverloaded) })
	case travels && l.underWay < maxUnderWay && l.queued() == 0 && l.ready(1, false):
		l.underWay++
		l.takeOff(flightOf(c))
	case !travels && l.underWay < maxUnderWay:
		l.underWay++
		l.client.work.Add(1)
		go l.start(j) // work.Go would cost an allocation more, for every call
	case !bounded || len(*queue) < room:
		if *queue = append(*queue, j); l.ferry != nil {
			l.depart(false)
		}
	default:
		// Not here: the caller may hold locks that a trace hook wants.
		l.client.work.Go(func() { j.drop(errOverloaded) })
	}
	l.mu.Unlock()
	if len(dropped) > 0 {
		l.client.work.Go(func() {
			for _, d := range dropped {
				d.drop(errGivenUp)
			}
		})
	}
}

func (l *lane) start(j job) {
	defer l.client.work.Done()
	l.serve(j)
}

// serve runs j, and then what waits, until nothing does.
func (l *lane) serve(j job) {
	for j != nil {
		j.run(l.node)
		j = l.next()
	}
}

// next returns a waiting job that somebody still wants, or nil after giving up
// the caller's place.
func (l *lane) next() job {
	if l.ferry != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.underWay--
		l.depart(false)
		return nil
	}
	for {
		l.mu.Lock()
		j := l.first()
		if j == nil {
			l.underWay--
		}
		owes := l.owes()
		l.mu.Unlock()
		switch {
		case j == nil:
			return nil
		case j.dead():
			j.drop(errGivenUp)
		case owes && j.creates():
			j.drop(errOverloaded)
		default:
			return j
		}
	}
}

// first takes the job that goes first out of its queue: of eight places one is for
// releases and one for acquires, if there are any, since callers of Extend could take
// all of them for ever. The caller holds l.mu.
func (l *lane) first() job {
	l.turn++
	switch l.turn % 8 {
	case 0:
		if j := pop(&l.waiting[ofAcquire]); j != nil {
			return j
		}
	case 4:
		if j := pop(&l.waiting[ofRelease]); j != nil {
			return j
		}
	}
	for r := range l.waiting {
		if j := pop(&l.waiting[r]); j != nil {
			return j
		}
	}
	return nil
}

// owes reports whether so much is still to be released on the node that nothing
// more may be taken there. The caller holds l.mu.
func (l *lane) owes() bool {
	owed := len(l.repeats) + len(l.waiting[ofRelease])
	return l.repeating && owed+l.underWay >= maxOwed || owed >= maxBehind
}

// sweep takes the jobs that nobody wants any more out of a queue. The caller holds
// the lane's mu.
func sweep(queue *[]job) (dropped []job) {
	*queue = slices.DeleteFunc(*queue, func(j job) bool {
		dead := j.dead()
		if dead {
			dropped = append(dropped, j)
		}
		return dead
	})
	return dropped
}

// queued returns how many jobs wait. The caller holds l.mu.
func (l *lane) queued() (n int) {
	for _, q := range l.waiting {
		n += len(q)
	}
	return n
}

// pop takes the first of a queue, or returns the zero value if it is empty.
func pop[T any](queue *[]T) (first T) {
	q := *queue
	if len(q) == 0 {
		return first
	}
	var none T
	first, q[0] = q[0], none
	if q = q[1:]; len(q) == 0 {
		q = nil // let the array go
	}
	*queue = q
	return first
}
