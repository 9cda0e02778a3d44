// Tells TestMain that the race detector is on, so that the program gets it too.

//go:build race

package main

const raceEnabled = true
