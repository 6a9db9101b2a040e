// Package netlab makes hosts for tests out of network namespaces: each has its own
// interfaces, addresses and ports, and is joined to others by veth wires, with a
// rate and a queue if that is wanted. It needs Linux and root; a test that asks
// for a lab elsewhere is skipped, with the reason.
package netlab
