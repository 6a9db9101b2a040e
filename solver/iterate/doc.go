// Package iterate runs any fixed-point iteration x = F(x) that is divided among peers: it decides
// which values of its neighbours a peer may read, when a run ends, and with which answer. It knows
// no grid, no operator and no obstacle.
//
// A Peer is pure reverse communication: it does no I/O, reads no clock and starts no goroutine. Its
// caller, the exchange, asks Next what to do, carries it out and passes in what arrives.
package iterate
