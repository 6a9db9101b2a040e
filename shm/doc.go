// Package shm is the link between processes of one host: frames in shared memory. A Memory joins
// links of one process instead, over a heap block.
//
// Each of two connected ends has an outbox: memory that it alone writes and that the other end
// maps read-only. The kernel enforces this with seals of a memfd, which also fix its size. An
// outbox holds
//
//   - a lane: a ring of 64-byte lines with one record per frame. The first word of a record, its
//     commit word, is stored last, so that a record is read when it is complete;
//   - blocks for long frames of synchronous sessions; the record in the lane names the block. Without a free
//     block the frame lies in the lane;
//   - slots for asynchronous values (Frame.Value): some buffers each. The newest frame replaces
//     an unread one, a frame is never torn, and an end that does not read blocks nobody;
//   - words by which this end answers: how far it has read the other end's lane and slots, which
//     blocks it has given back, and whether it sleeps.
//
// An end never waits for the other end, and takes no lock in shared memory. All words that the other
// end wrote are loaded once, checked and then used. Wrong values take the connection down, and nothing
// else. The frames that Recv returns from the lane are copies. A frame in a block or a slot lies in the other
// end's outbox until it is released, and must not be written to. A correct end leaves it as it is; the bytes
// of a hostile one may change, so whoever checks them must work on a copy. A frame that is not released
// keeps its block or buffer from being used again, and holds up nothing else.
//
// A user may place a message in a block or buffer itself (Reserve). It is then copied by neither end.
//
// The ends meet over an abstract Unix socket. Its address and a secret token travel in the Offer,
// over the control channel. The kernel confirms the user of the other end. The socket stays open:
// it carries the outboxes, then a byte for each time that an end sleeps and has to be woken, and it
// hangs up when the other process ends, however it ends. Memory and socket have no name in the
// file system, so nothing remains of a process that was killed.
package shm
