// Package script holds the Lua scripts that nodes run, one atomic step each.
//
// A script answers one bulk string, "verdict remaining counter", in decimal: a
// table would lose everything after its first nil, and a number its fraction.
// The verdicts are those of redlock.Verdict, remaining is a PTTL, and counter is
// the lock's fencing counter, or 0; of a waiter it is how many stand in front, and
// of a release 1 if somebody was told.
package script

import (
	"crypto/sha1" // the name that EVALSHA knows a script by, not a safeguard
	_ "embed"
	"encoding/hex"
)

// A Script is a script's source and the name it is cached under.
type Script struct {
	Source string
	SHA    string
}

var (
	//go:embed common.lua
	common string
	//go:embed acquire.lua
	acquire string
	//go:embed raise.lua
	raise string
	//go:embed rearm.lua
	rearm string
	//go:embed take.lua
	take string
	//go:embed extend.lua
	extend string
	//go:embed release.lua
	release string
	//go:embed enlist.lua
	enlist string
)

// The scripts. Take is Acquire without a counter.
var (
	Acquire = named(common + acquire)
	Raise   = named(common + raise)
	Rearm   = named(common + rearm)
	Take    = named(take)
	Extend  = named(extend)
	Release = named(release)
	Enlist  = named(enlist)
)

func named(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{Source: source, SHA: hex.EncodeToString(sum[:])}
}
