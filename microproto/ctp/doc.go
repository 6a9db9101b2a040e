// Package ctp is CTP*, the transport of P2PSAP, as a set of micro-protocols: the
// Configurable Transport Protocol of Wong, Hiltunen and Schlichting (INFOCOM 2001) with
// messages, tags and labels in place of its byte stream. Table I of Tembo, Nguyen and El Baz
// (PDP 2013) says which micro-protocols make a channel. This package has all of its rows, and
// the optional rows CUBICCongestionAvoidance and NegativeAck.
//
// A composite lists the micro-protocols in the order of the table, from top to bottom. Within
// a cluster over Ethernet:
//
//	TransportDriver  Resize  Synchronous  SequencedSegment  PositiveAck  Retransmit  RTTEstimation  ReliableFIFO
//	TransportDriver  Resize  Asynchronous
//
// Between clusters the first column adds DuplicateAck, WindowCongestionControl and
// TCPNewRenoCongestionAvoidance, the second DCCPAck, DCCPWindowCongestionControl and
// TCPCongestionAvoidance. Over InfiniBand each column has its first three rows only.
//
// On the way down, Resize segments a message and raises SegmentFromUser, in which the other
// micro-protocols write their header bytes or hold the segment. In SegmentToNet the latest
// acknowledgement is written, and TransportDriver transmits the segment. On the way up, ports,
// shape and acknowledgement are checked in SegmentFromNet, and ReliableFIFO holds segments that
// are out of order. SegmentToUser brings the others, in order, to Resize and the endpoint.
package ctp
