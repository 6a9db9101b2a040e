// Package fas implements asynchronous multigrid: the full approximation scheme with a replicated coarse level.
//
// Every peer owns a box. It relaxes on a region, the box and an overlap, on the finest grids, and on the whole domain on
// a coarse grid and all coarser ones. Two kinds of values travel, and the newest replaces the older:
//
//  1. The ring: the points around a region, from the peers that own them.
//  2. The right-hand side of the replicated grid at the points that a peer owns, A·I·u + R·r.
//
// Both are values of the solution or of a problem whose solution is its restriction, not increments. Applied twice they
// change nothing, applied late they only lack what changed since. So any delay, loss or order of messages is harmless, and
// a step gains about as much as a cycle of multigrid on one machine.
package fas
