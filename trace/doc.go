// Package trace records what a node does, in a ring of records of a fixed size, and reads and writes trace files.
//
// A Ring belongs to one node. The node, its composites and the caller of the node add records; the caller of the node
// serializes them, as it serializes all calls of the node. The ring keeps the newest records. What is needed to read
// them (the names of sessions, the layouts of headers, samples of the control channel) is kept in tables beside it,
// which have bounds of their own. Snapshot copies all of that; Append writes snapshots as the bytes of a file, and
// Parse reads a file.
//
// The package reads no clock: every instant is one that the node was given.
package trace
