// What the parent and a worker say to each other over the worker's pipes.

package main

import "time"

// workerEnv marks a process as a worker. Everything else it needs comes over
// its standard input, where no list of processes shows the passwords.
const workerEnv = "REDLOCK_BILLING_WORKER"

// A job is the first thing that a worker reads. After it come orders, and the
// end of the input stops the worker.
type job struct {
	Worker  int           `json:"worker"` // from 1
	Nodes   []string      `json:"nodes"`
	Store   store         `json:"store"`
	TTL     time.Duration `json:"ttl"`
	Work    time.Duration `json:"work"` // mean time of one charge
	Seed    uint64        `json:"seed"`
	NoLock  bool          `json:"noLock"`
	NoFence bool          `json:"noFence"`
	StallOn int64         `json:"stallOn"` // the invoice in whose charge the worker hangs, to be killed; 0: none

	Plan map[int64]moment `json:"plan,omitempty"` // by invoice: where whoever bills it waits for what comes
}

// An order is what a worker reads after its job.
type order string

const (
	begin  order = "begin"  // bill
	hang   order = "hang"   // hang in the next charge, to be stopped
	resume order = "resume" // hang in no charge any more
	goOn   order = "goOn"   // what a moment of the plan had to bring has come
)

// A kind of event.
type kind string

const (
	ready   kind = "ready"   // connected, waiting for the start
	held    kind = "held"    // has the lock of a customer
	stalled kind = "stalled" // hangs in a charge, lock in hand
	poised  kind = "poised"  // waits at a moment of the plan
	refused kind = "refused" // was refused by the fence, and has billed nothing
	lost    kind = "lost"    // has given up a charge, because its lease has ended
	billed  kind = "billed"  // has committed a charge
	waiting kind = "waiting" // every customer that is left is locked; waits for this one
	note    kind = "note"    // something unusual that was dealt with
	failed  kind = "failed"  // ends because of an error

	// The parent's own, in the same stream.
	stderr kind = "stderr" // a line that the worker wrote to standard error
	exited kind = "exited"
)

// An event is one line of a worker's standard output. Worker and pid are known
// to the parent, who fills them in.
type event struct {
	Kind     kind          `json:"kind"`
	At       time.Time     `json:"at"`
	Customer int64         `json:"customer,omitempty"`
	Invoice  int64         `json:"invoice,omitempty"`
	Cents    int64         `json:"cents,omitempty"`
	Wait     time.Duration `json:"wait,omitempty"` // for the lock
	Left     time.Duration `json:"left,omitempty"` // of the lease
	Hold     time.Duration `json:"hold,omitempty"` // of the lock until the commit
	Asked    int           `json:"asked"`          // locks asked for so far
	Moment   moment        `json:"moment,omitempty"`
	Text     string        `json:"text,omitempty"`

	from *member
}
