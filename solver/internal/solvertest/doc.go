// Package solvertest has what tests of several packages share: problems, partitions, oracles and a
// network in virtual time.
package solvertest
