// Package netlab builds networks of hosts for tests from Linux network namespaces. Each host has its own
// interfaces, addresses and ports. Hosts are connected by veth wires with an optional rate and queue, or
// by emulated links. The package needs Linux and root; elsewhere New skips the test and states the reason.
package netlab
