// Package flow sends traffic between the hosts of a lab and measures what arrives: TCP connections of the
// kernel and P2PSAP sessions, which may share a link. Each end of a flow is a process in its host: the
// program that starts flows is started again for every end, and must call Main at its beginning.
package flow
