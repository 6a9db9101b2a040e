// Package path describes how two peers reach each other: the kind of network between them,
// whether they are in one cluster, and what was measured on the way. It does no I/O and
// reads no clock.
//
// Locate decides on the Locality from Evidence, of which both ends have the same. A
// Measurement takes the round trips that are part of it.
package path
