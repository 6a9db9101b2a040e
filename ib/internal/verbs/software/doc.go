// Package software is an adapter in pure Go for package verbs: the devices of one
// Fabric, all in one process, joined by wires without a kernel. It keeps to the rules
// of the InfiniBand Architecture Specification, volume 1, that hurt: attribute masks,
// states, keys and bounds, empty receive queues, packet sequence numbers, loss on UC,
// flushes, overruns. Work is done on the goroutine that posts it; there is none of the
// adapter's own but the timer's while something waits for it.
package software
