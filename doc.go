// Package redlock is a lock held on a quorum of independent Redis servers.
//
// A [Mutex] sends a random token to all N nodes in parallel, holds the lock when
// floor(N/2)+1 of them have granted it, and trusts it for
//
//	TTL - elapsed - drift
//
// which is the algorithm of "Distributed Locks with Redis"
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
//
// # Guarantee
//
// At most one client holds a lease on a name at any instant, as long as these
// assumptions hold:
//
//   - All clients use the same set of nodes, and the nodes are independent: no
//     replicas, no two names of one server, no load balancer in front.
//   - The clocks of the nodes and clients run at rates that differ by no more
//     than the drift allows (1 % by default). Offsets do not matter. Steps of a
//     node's wall clock do, since Redis expires keys by it: with h nodes held,
//     exclusion needs that fewer than Q-(N-h) of them step within a TTL, where Q
//     is the quorum.
//   - No node forgets a key that it granted before the key's expiry: by a
//     restart without its data, a failover to a replica that lacked it, eviction,
//     or a flush. The same count applies.
//
// Delays, lost messages, and pauses before the grant are harmless: they use up
// validity.
//
// # What is not guaranteed
//
// A process that is stopped, or a write that is delayed, after it has checked
// its lease can act when the lease is over. No lock with a time limit can
// prevent that; only the storage that is written to can. Give it the number that
// [Lease.FencingToken] returns, and let it refuse a lower one than it has seen:
// package fence does that.
//
// Unless a majority of the nodes answers, nobody can lock. Waiters are served
// roughly in the order in which they came, but nothing is promised.
//
// # Use
//
//	client, err := redlock.New(redlock.Redis(a, b, c, d, e))
//	...
//	mutex, err := client.NewMutex("customer-42")
//	...
//	err = mutex.Do(ctx, func(ctx context.Context, l *redlock.Lease) error {
//		return bill(ctx, l.FencingToken()) // ctx ends when the lease does
//	})
//
// [Mutex.Lock] and [Mutex.TryLock] give a [Lease] to those who would rather
// unlock by hand. The client renews it until then. If it cannot, the context of
// the lease ends at the local deadline, whatever the network does. Whoever acts
// for longer than a moment checks [Lease.Err] before each step that matters.
//
// [Client.Check] tells what is unsafe about the nodes, [Client.Inspect] who holds a
// lock. Package redlocktest has nodes in memory for tests.
package redlock
