// Package bench holds benchmarks of redlock beside other lock libraries, on real
// redis-server processes. See README.md.
package bench
