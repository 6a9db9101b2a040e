// Package mptest has tools for tests of micro-protocols and links: virtual time, a faulty link, a
// pair of composites joined by one, conformance suites and golden transcripts. It is meant for
// modules of third parties too.
//
// One seed determines a run: the same seed gives the same run, byte for byte and event for event.
package mptest
