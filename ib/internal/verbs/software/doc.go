// Package software is an adapter in pure Go for package verbs: the devices of one Fabric, all
// in one process, connected without a kernel. It follows the rules of the InfiniBand
// Architecture Specification, volume 1, that programs break most easily: attribute masks,
// states, keys and bounds, empty receive queues, packet sequence numbers, loss on UC, flushes,
// overruns. Work is done on the goroutine that posts it. Only timers use another goroutine.
package software
