// Package solvertest holds problems, partitions, reference solutions and a network in virtual time for the tests
// of several packages.
package solvertest
