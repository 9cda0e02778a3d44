// Gather: one question to all nodes.

package quorum

import "context"

// Gather calls ask for each of nodes nodes, then collects the replies as
// [Inbox.Collect] does. late is as in [NewInbox].
//
// ask is called in the caller's goroutine, for all nodes even if an early reply
// decides, and must not block. It starts the request, and sees to it that the
// reply, or the failure, is Put. Gather does not wait for requests that are
// still out when it returns; their replies go to late.
func Gather[R any](
	ctx context.Context,
	timeout <-chan struct{},
	nodes int,
	ask func(node int, in *Inbox[R]),
	count func(node int, r R) Outcome,
	late func(node int, r R),
) (Outcome, error) {
	in := NewInbox(nodes, late)
	defer in.shut(nil) // Collect has done it, unless ask panics
	for node := range nodes {
		ask(node, in)
	}
	return in.Collect(ctx, timeout, count)
}
