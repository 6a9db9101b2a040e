// Package ib is the InfiniBand link: P2PSAP's physical layer over verbs, on InfiniBand
// and RoCE. What a host offers to it is found out by Look; docs/infiniband.md tells how
// it is used.
//
// Each peer has two queue pairs over one domain, one region of blocks and one queue of
// receive completions: a Reliable Connected one that carries frames of synchronous
// sessions and an Unreliable Connected one for asynchronous ones. Both are made when a
// peer is offered a connection and stay; a change of mode changes which one sends. The
// adapter does congestion control, flow control and recovery.
//
// A frame goes in one work request. The 32 bits of immediate data that it may carry
// tell the other end, in both directions and cumulatively, how many frames it may send:
// so no frame meets a receive queue that is empty, which an unreliable pair would lose
// it to. What has no credit waits, for each peer apart; a newer frame of an asynchronous
// value takes the place of the one that waits.
//
// Three ways to carry a message, chosen in Config:
//
//   - segments (the default, as published): blocks of 8128 bytes, one segment each;
//   - one request per message: MessageBytes, blocks as large as the largest message;
//   - one-sided: WindowSlots, in which frames of asynchronous values are written in
//     place into the other end's memory, the newest over the older.
package ib
