// Package ib is the InfiniBand link: P2PSAP's physical layer over verbs, on InfiniBand
// and RoCE. What a host offers to it is found out by Look; docs/infiniband.md tells how
// it is used.
package ib
