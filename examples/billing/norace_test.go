// Tells TestMain that the race detector is off.

//go:build !race

package main

const raceEnabled = false
