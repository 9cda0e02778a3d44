// What can go wrong, as facts that a caller can tell apart.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// The facts. Errors returned by this package wrap them; test with [errors.Is].
var (
	// ErrTaken: so many nodes hold the lock for another token that no quorum is
	// left. Waiting helps.
	ErrTaken = errors.New("lock is taken")

	// ErrNoQuorum: too few nodes gave a usable answer. Who holds the lock, if
	// anybody, is not known.
	ErrNoQuorum = errors.New("no quorum of nodes answered")

	// ErrExpired: the votes were won too late, or the lease's local deadline
	// has passed.
	ErrExpired = errors.New("validity has expired")

	// ErrLost: the lease ended before its owner unlocked it. It comes together
	// with the reason: ErrExpired, ErrNoQuorum, ErrTaken, ErrNotHeld or
	// ErrMaxHold. So ask for it before those: alone they mean that the lock was
	// never granted.
	ErrLost = errors.New("lease is lost")

	// ErrNotHeld: an Extend or Unlock of a lease that has ended, or whose token a
	// quorum no longer has.
	ErrNotHeld = errors.New("lock is not held")

	// ErrUnlocked: the lease was ended by its Unlock.
	ErrUnlocked = errors.New("lease is unlocked")

	// ErrMaxHold: the lease was held for as long as [WithMaxHold] allows.
	ErrMaxHold = errors.New("lease reached its maximum hold time")

	// ErrNodeTimeout: a node did not answer within the node timeout.
	ErrNodeTimeout = errors.New("node timed out")

	// ErrClosed: the Client is closed.
	ErrClosed = errors.New("client is closed")
)

// errNoAgreement is an ErrNoQuorum of nodes that granted the lock.
var errNoAgreement = fmt.Errorf("%w in time to agree on a fencing token", ErrNoQuorum)

// What one node said, where it is not the verdict of the quorum. They are not
// the facts above on purpose: one node that holds another token does not make
// the lock taken.
var (
	errOtherToken  = errors.New("holds another token")
	errNoToken     = errors.New("holds no token")
	errBuried      = errors.New("refused a claim that was given up")
	errOverloaded  = errors.New("too many commands are waiting for the node")
	errNoVerdict   = errors.New("answered without a verdict")
	errNoProber    = errors.New("cannot be asked about its server: not a Prober")
	errNoInspector = errors.New("cannot be asked what it stores: not an Inspector")
	errGivenUp     = errors.New("not sent: the attempt had ended")
)

// A QuorumError is an operation that did not get the votes it needed. It is
// always used as a pointer. It wraps the verdict ([ErrTaken], [ErrNoQuorum],
// [ErrNotHeld] or [ErrExpired]) and what each node said.
type QuorumError struct {
	Op   string // "lock", "extend" or "unlock"
	Name string // the lock's name

	Need    int // votes that the operation needed
	Granted int // nodes that gave theirs
	Denied  int // nodes that refused it: another token, or none, is there
	Failed  int // nodes without a usable answer when the outcome was certain

	// Nodes holds a *NodeError for each vote denied or failed. Never nil.
	Nodes *multierror.Error

	verdict error
	_       struct{}
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock: %s %q: %v: %d of the %d votes needed, %d denied, %d failed",
		e.Op, abbreviate(e.Name), e.verdict, e.Granted, e.Need, e.Denied, e.Failed)
	for i, err := range e.Nodes.WrappedErrors() {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

// Unwrap returns the verdict and the errors of the nodes.
func (e *QuorumError) Unwrap() []error {
	return append([]error{e.verdict}, e.Nodes.WrappedErrors()...)
}

// A NodeError is what one node said, or that it said nothing in time. It is
// always used as a pointer.
//
// It never wraps a context error: drivers and dialers report deadlines of their
// own as context.DeadlineExceeded, and a caller must be able to tell those from
// the end of its own context. A timeout of either kind is [ErrNodeTimeout].
type NodeError struct {
	Node string
	Op   string // "acquire", "raise", "extend", "rearm", "release" or "enlist"; of a look at the node another
	Err  error

	_ struct{}
}

func (e *NodeError) Error() string {
	return fmt.Sprintf("node %q: %s: %s", e.Node, e.Op, oneLine(e.Err))
}

// Unwrap returns Err.
func (e *NodeError) Unwrap() error { return e.Err }

// newNodeError wraps err, which must not be nil, for the named node.
func newNodeError(node, op string, err error) *NodeError {
	timedOut := isTimeout(err)
	if isContextError(err) {
		err = masked{err}
	}
	if timedOut && !errors.Is(err, ErrNodeTimeout) {
		err = fmt.Errorf("%w: %w", ErrNodeTimeout, err)
	}
	return &NodeError{Node: node, Op: op, Err: err}
}

// isTimeout reports whether err says that something did not come in time.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, ErrNodeTimeout) || errors.As(err, &timeout) && timeout.Timeout() ||
		errors.Is(err, context.DeadlineExceeded)
}

// masked hides that an error is a context error, and nothing else of it.
type masked struct{ err error }

func (m masked) Error() string { return m.err.Error() }

func (m masked) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(m.err, target)
}

func (m masked) As(target any) bool { return errors.As(m.err, target) }

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// callerEnded is the error of an operation whose caller's context ended before
// the outcome was certain. It wraps the context's error and cause, and last, if
// not nil, is what the nodes had said until then.
func callerEnded(ctx context.Context, op, name string, last error) error {
	errs := []error{causeOf(ctx)}
	if !errors.Is(errs[0], ctx.Err()) {
		errs = append([]error{ctx.Err()}, errs...)
	}
	if last != nil {
		errs = append(errs, last)
	}
	return &endedError{op: op, name: name, errs: errs}
}

// endedError prints several errors on one line, which errors.Join does not.
type endedError struct {
	op, name string
	errs     []error
}

func (e *endedError) Error() string {
	parts := make([]string, len(e.errs))
	for i, err := range e.errs {
		parts[i] = oneLine(err)
	}
	return fmt.Sprintf("redlock: %s %q: %s", e.op, abbreviate(e.name), strings.Join(parts, ": "))
}

func (e *endedError) Unwrap() []error { return e.errs }

// oneLine is for errors of others, which may have been joined.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// joinedErrors is what errors.Join makes, on one line.
type joinedErrors []error

func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return joinedErrors(errs)
}

func (e joinedErrors) Error() string {
	parts := make([]string, len(e))
	for i, err := range e {
		parts[i] = oneLine(err)
	}
	return strings.Join(parts, "; ")
}

func (e joinedErrors) Unwrap() []error { return e }

// abbreviate keeps an error readable when the name is long.
func abbreviate(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s… (%d bytes)", name[:most], len(name))
}
