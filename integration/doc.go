// Package integration tests the library against real servers. It has no code of
// its own. README.md lists the faults that they bring about, and what a user sees.
//
// A test skips, and says so, where a server that it needs is not installed. With
// the server's name in the comma-separated list of the environment variable
// REDLOCK_REQUIRE (docker, postgres, mariadb, redis) it fails instead.
package integration
