// Package fence lets a storage layer refuse the holder of a lock that it has
// lost without knowing.
//
// A lock with a time limit cannot stop a process that is paused between its
// last look at the lease and its write. Only the storage that is written to
// can. So each grant of a lock carries a fencing token, a number that grows
// from grant to grant (FencingToken of a lease). The holder presents it, and
// the storage keeps the highest one per resource and refuses any lower one with
// [ErrStale]. These are the sequencers of Chubby (Burrows, 2006); Kleppmann,
// "How to do distributed locking" (2016), asks for them from locks on Redis.
//
// [Dialect.Check] does it in a table of an SQL database, inside the caller's
// transaction, and [Memory] in the memory of a process.
//
// # Rules
//
// Present the token before the first read, and again at the write. A storage
// that sees it at writes only can lose an update:
//
//	A, token 1:  reads 0  (paused)             writes 1
//	B, token 2:                       reads 0             writes 1
//
// Nobody has heard of token 2 when A writes, so A is accepted, and B overwrites
// it: two updates, one counted. If B presents its token before it reads, A's
// write is refused.
//
// Check and access in one atomic step: in one SQL transaction, or under one
// mutex. A check that is merely followed by a write leaves a gap for another
// holder. Work that takes several transactions checks in each of them, first.
//
// An equal token is the same holder: it may read and write as often as it likes.
// What one holder does at the same time in several places is its own affair.
//
// Tokens are compared per resource only. Let the resource be the name of the
// lock; all data that one lock protects goes under that one name. Gaps between
// tokens are normal.
//
// A token is an int64. Parse it as one, and send it as a string in JSON (the
// `json:",string"` tag): many readers of JSON hold numbers as float64, which is
// exact up to 2^53 only.
//
// A token that is not positive is refused with [ErrNoToken]: it is what a lease
// says whose fencing is off.
//
// The highest token must be kept for as long as a holder of a lower one may
// still wake up. No guard of this package drops it by itself.
//
// # A column instead of a table
//
// Where a lock protects a single row, its highest token can be a column of it.
// The first statement claims the row and reads it, the second writes it; either
// is refused if it finds no row:
//
//	UPDATE accounts SET fence = $2 WHERE id = $1 AND fence <= $2 RETURNING balance
//	UPDATE accounts SET balance = $3 WHERE id = $1 AND fence = $2
//
// # Stores with conditional writes
//
// An HTTP resource with ETags, an object store with If-Match, or a table with a
// version column can fence without code of its own. Keep the highest token in
// the object, and let every write be conditional:
//
//  1. Read the object and its version. Does it carry a higher token: stale.
//  2. Claim it: write it back with the own token, on condition of that version.
//     If that fails, somebody else wrote: start again at 1.
//  3. Work on what was claimed.
//  4. Write the result with the own token, on condition of the version that the
//     claim made. If that fails, a newer holder has claimed it: stale. If the
//     answer is lost, start again at 1.
//
// The claim presents the token before the work: from then on the version that
// an older holder knows is outdated, and if it reads again it meets the newer
// token. The example ConditionalWrites shows it.
package fence
