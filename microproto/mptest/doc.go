// Package mptest is what tests of micro-protocols and links need: virtual time, a
// faulty link, a pair of composites joined by one, conformance suites and golden
// transcripts. It is for authors outside this module too.
//
// Everything is driven by one seed: the same seed gives the same run, byte for
// byte and event for event.
package mptest
