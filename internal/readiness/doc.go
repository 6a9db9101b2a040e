// Package readiness waits for descriptors in the runtime's network poller, which does not watch them itself. It is
// for Linux.
package readiness
