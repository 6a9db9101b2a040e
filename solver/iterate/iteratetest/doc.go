// Package iteratetest tests iterations. Network runs peers over a simulated, deterministic network in virtual
// time. Suite checks the blocks of an iteration. The package imports no test framework.
package iteratetest
