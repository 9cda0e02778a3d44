//go:build !race

// Whether the race detector is on.

package sim_test

const race = false
