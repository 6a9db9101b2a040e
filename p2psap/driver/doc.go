// Package driver runs a p2psap.Node in real time: it owns the clock, the link's
// receiver, the control connections and every goroutine. It makes no decision of
// the protocol's.
//
// One lock a node guards the core. A Send pushes its frames to the link on the
// caller's own goroutine; one goroutine receives from the link always, whatever
// the application does; each control connection has a reader and a writer; one
// goroutine waits for the next timer.
package driver
