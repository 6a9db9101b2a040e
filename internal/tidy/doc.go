// Package tidy checks the project's rules about its own source: which package may
// import which, that the core is pure (no I/O, clock, goroutine, lock, channel,
// global random source or map iteration), the folders of the root, the length of
// files, and the documentation of exported identifiers. It consists of tests, which also
// check that documents link to files and decisions, and name identifiers, packages and targets of make, that exist.
package tidy
