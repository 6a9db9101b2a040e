// Package control holds the control channel of a node: the encoding of its messages and the
// associations with its peers. It does no I/O and reads no clock.
//
// An association outlives its connections. Two nodes are associated once each has accepted the
// other's hello. From then on sequenced messages arrive exactly once and in order: what a peer
// has not acknowledged is sent again over the next connection. An association ends when a peer
// says goodbye, sends a malformed message, or is silent for the peer time-out.
//
// What a caller of Associations has to do:
//
//  1. Report every connection with ConnectionUp, ConnectionDown and DialFailed, under numbers
//     that are never 0 and never used again.
//  2. Pass every message of a connection to Receive, whole and in order.
//  3. Call Advance when Deadline has come. Later is allowed; everything then happens later.
//  4. Carry out what Host.Emit is given, in that order.
//  5. Implement Host. Its methods are called inside the calls above and may call Send.
package control
