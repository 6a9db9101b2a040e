// Package ether is the Ethernet/IP link of the transport: frames travel as UDP datagrams
// over IPv4 or IPv6. Where the kernel supports it, the link sends and receives in batches
// (sendmmsg, recvmmsg), with segmentation offload (UDP_SEGMENT) and receive coalescing
// (UDP_GRO). Each is detected at run time, and segmentation offload is given up for a peer
// when an interface refuses it. One datagram per system call always works.
//
// The link is unreliable and unordered, as UDP is. It counts and drops datagrams from
// addresses that were never accepted.
package ether
