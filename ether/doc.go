// Package ether is the Ethernet/IP link of the transport: frames travel as UDP
// datagrams over IPv4 or IPv6. Where the kernel has them it sends and receives in
// batches (sendmmsg, recvmmsg) with segmentation offload (UDP_SEGMENT) and
// coalescing on receipt (UDP_GRO); each is tried at run time and given up at run
// time when an interface refuses it, so that the slowest path, one datagram a
// system call, always works.
//
// The link is unreliable and unordered, as UDP is. Datagrams from addresses that
// nobody accepted are counted and dropped.
package ether
