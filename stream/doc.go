// Package stream is a link over kernel TCP. Every pair of ends has one connection, which carries frames behind their
// lengths.
//
// The kernel recovers losses, controls congestion and keeps the order, so sessions on this link take the columns of
// Table I for networks that do these things themselves. The link is not in the paper's table. It is
// meant for synchronous sessions: a lost segment makes every later one wait, so that an asynchronous session reads old
// values. That is better than none where no other network works.
//
// The end with the lower name dials the addresses of the other's offer, all at once. The accepting end takes the
// first connection that shows the token of its offer, and answers with that of the dialling end. A connection that
// fails is reported (microproto.Connected); new offers make another.
//
// Frames are not encrypted by the link. Sessions between hosts protect them; see docs/security.md.
package stream
