// The table redlock_fence: how it is made, and the one statement that uses it.

package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// The table redlock_fence, as [Dialect.CreateTable] makes it.
//
// Its key is the SHA-256 of the resource's name, in hexadecimal: names may be
// long and hold any bytes, while collations compare without case or accents and
// indexes cut off. The column resource is for people only: the start of the
// name, with what is not printable ASCII escaped as in Go.
//
// A row takes about 200 bytes and is never deleted. Whoever deletes one lets
// stale tokens in again, so it must be older than any process can be that once
// held the lock. The tokens of package redlock tell how old, since they lie
// close to the time of their grant in microseconds of Unix time.
const (
	PostgresSchema = `CREATE TABLE IF NOT EXISTS redlock_fence (
	resource_hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	resource TEXT NOT NULL,
	token BIGINT NOT NULL
)`

	MySQLSchema = `CREATE TABLE IF NOT EXISTS redlock_fence (
	resource_hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	resource VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	token BIGINT NOT NULL,
	checks BIGINT NOT NULL
) ENGINE=InnoDB`

	SQLiteSchema = `CREATE TABLE IF NOT EXISTS redlock_fence (
	resource_hash TEXT NOT NULL PRIMARY KEY,
	resource TEXT NOT NULL,
	token INTEGER NOT NULL
) WITHOUT ROWID`
)

// Each statement stores the presented token if it is the highest, answers with
// the highest, and leaves the row locked. A SELECT before an UPDATE would not
// do: between the two another transaction can store a higher token.
//
// The row is written even if the token stays the same: an equal token, too, must
// hold up a higher one until its transaction is over.
const (
	postgresPresent = `INSERT INTO redlock_fence (resource_hash, resource, token) VALUES ($1, $2, $3)
ON CONFLICT (resource_hash) DO UPDATE SET token = GREATEST(redlock_fence.token, excluded.token)
RETURNING token`

	// MySQL locks a row that it leaves as it was, but does not count it as
	// written. The count of checks changes it. Without that, a Galera cluster
	// does not see the conflict between an equal token on one node and a higher
	// one on another: in a test of two nodes, 516 of 1500 stale holders could
	// commit after the newer one had. With it, none could.
	mysqlPresent = `INSERT INTO redlock_fence (resource_hash, resource, token, checks) VALUES (?, ?, ?, 1)
ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST(token, ?)), checks = checks + 1`

	sqlitePresent = `INSERT INTO redlock_fence (resource_hash, resource, token) VALUES (?, ?, ?)
ON CONFLICT (resource_hash) DO UPDATE SET token = max(token, excluded.token)
RETURNING token`
)

// key returns the key of a resource in the table, and its name for people. The
// latter is plain ASCII, since not every database can store other characters.
func key(resource string) (hash, label string) {
	sum := sha256.Sum256([]byte(resource))
	const most = 200
	label = strconv.QuoteToASCII(resource[:min(len(resource), most)])
	label = label[1 : len(label)-1] // no quotes
	if len(resource) > most || len(label) > most {
		label = label[:most] + "..."
	}
	return hex.EncodeToString(sum[:]), label
}
