// Package ib is the InfiniBand link: P2PSAP's physical layer over verbs, on InfiniBand and
// RoCE. Look describes the RDMA ports of a host; docs/infiniband.md is the user's guide.
//
// Each peer has two queue pairs over one domain, one region of blocks and one queue of
// receive completions: a Reliable Connected pair for frames of synchronous sessions and an
// Unreliable Connected pair for asynchronous ones. Offer creates both and they stay; a change
// of mode selects the other. The adapter does congestion control, flow control and recovery.
//
// A frame is one work request. Its 32 bits of immediate data carry credit in both directions:
// cumulative counts of the frames that the other end may send. A frame therefore never meets
// an empty receive queue, where an unreliable pair would lose it. Frames without credit wait
// in a queue per pair, where a newer frame of an asynchronous value replaces the queued one.
//
// Config selects one of three ways to carry a message:
//
//   - segments (the default, as published): blocks of 8128 bytes, one segment each;
//   - one request per message: MessageBytes, blocks as large as the largest message;
//   - one-sided: WindowSlots, where frames of asynchronous values are written in place into
//     the other end's memory, newer ones over older ones.
package ib
