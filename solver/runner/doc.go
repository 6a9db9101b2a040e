// Package runner drives a richardson.Worker in real time over P2PSAP sockets: it does
// what the worker asks, carries faces and agreement messages, and makes no
// numerical decision.
//
// With each neighbour there are two sessions: "halo/3-4", in the mode that the
// scheme of iteration wants, and "agree/3-4", which is always synchronous. One
// goroutine does everything but the relaxations of a peer of several threads.
package runner
