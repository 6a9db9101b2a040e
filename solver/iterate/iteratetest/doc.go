// Package iteratetest tests iterations: a deterministic network in virtual time, and a suite that a Block
// has to pass. It imports no test framework.
package iteratetest
