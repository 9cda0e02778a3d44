//go:build !race

// Whether the race detector is on.

package model

const race = false
