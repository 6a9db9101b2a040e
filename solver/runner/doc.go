// Package runner runs a peer in real time over P2PSAP sockets. Package exchange decides what is sent
// and received; the runner supplies time, sockets, threads, early ends and progress. One goroutine
// does everything but the relaxations of a peer of several threads.
package runner
