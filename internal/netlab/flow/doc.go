// Package flow sends traffic between the hosts of a lab and measures what arrives:
// TCP flows of the kernel and sessions of ours, side by side. Each end is a process of
// its own, which lives in its host: the program that starts flows calls Main first
// thing, and is started again for every end.
package flow
