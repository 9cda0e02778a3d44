// Package sim runs the library against machines, clocks, networks and nodes that fail,
// in a bubble of testing/synctest, where hours pass in moments.
//
// One seed is one run. From it come the [Setting] (nodes, machines, clocks, options),
// the schedule of faults, the fate of every message and all that the workers do. A run
// is judged on the true clock, which no part of the library can see:
//
//   - the times of validity of one name never overlap, as long as the faults stay within
//     the bounds of docs/safety.md;
//   - tokens are unique, and in the order of acquisitions that do not overlap;
//   - a lease that is over says so, by Err, by its context, and when it is unlocked;
//   - no call outlives its bound;
//   - the storage that checks tokens loses no update;
//   - every acquire without an answer is followed by a release;
//   - once faults have ended no lock is left, nor a goroutine after Close.
//
// A run that breaks one of these is repeated with fewer and fewer faults, as long as it
// still breaks it, and what is left is told step by step, with the flags that run it
// again.
//
//	go test ./internal/sim                                    # 1,000 seeds
//	go test ./internal/sim -run TestSeeds -sim.seeds 1000000 -timeout 0
//	go test ./internal/sim -run TestSeeds -sim.seed 4711 -sim.profile crashes -v
//
// # Faults
//
// A [Fault] is declared, in faults.go: what it is called, whom it strikes, for how long,
// and what it does to them or to the messages between them. To add one is to add an entry
// to the table there and its name to a [Profile].
//
// # What is simulated
//
// The client is the library as it is. Nodes are those of package redlocktest, which a
// differential test holds to a real server. What stands between them is a link that
// delays each message by itself, so that they overtake one another, and may lose, copy or
// hold up any. A machine that is stopped sends nothing, hears nothing, and its timers are
// late; what the library did meanwhile takes effect when it goes on. It stops at these,
// and not between two statements: that a clock is read before anything is sent, and a lease
// ended before it is released, other tests hold. The pipelines of go-redis are not
// simulated: flight_test.go and the integration tests have real ones.
package sim
