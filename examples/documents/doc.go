// Package documents is a test: what the documents of this repository show as Go is
// compiled and run, and what they show as a command exists.
//
// A block of Go that begins with "package main" is a program, run on nodes in memory in
// place of its own addresses. Any other is a fragment, the inside of a function that
// returns an error; what it may use without declaring it is in testdata/prelude.go. A
// fragment fails if it returns an error, ends with one in a variable err, or panics. A
// block of declarations is only compiled.
package documents
