// Package ctp is CTP*, the transport of P2PSAP as a set of micro-protocols: the
// Configurable Transport Protocol of Wong, Hiltunen and Schlichting (INFOCOM 2001)
// without its byte stream and with messages, tags and labels instead. Table I of
// Tembo, Nguyen and El Baz (PDP 2013) says which of them make a channel; this
// package holds all of its rows, and optional ones: CUBICCongestionAvoidance and
// NegativeAck.
//
// A composite lists them in the table's order, from top to bottom. Within a cluster:
//
//	TransportDriver  Resize  Synchronous  SequencedSegment  PositiveAck  Retransmit  RTTEstimation  ReliableFIFO
//	TransportDriver  Resize  Asynchronous
//
// Between clusters the first is followed by DuplicateAck, WindowCongestionControl and
// TCPNewRenoCongestionAvoidance, the second by DCCPAck, DCCPWindowCongestionControl and
// TCPCongestionAvoidance; over InfiniBand only three rows are left of each.
//
// A segment going down: Resize cuts it and raises SegmentFromUser, where the
// others write their header bytes or hold it; SegmentToNet puts in what must be
// fresh (acknowledgements) and TransportDriver transmits. Going up: the ports, the
// shape and the acknowledgement are looked at in SegmentFromNet, ReliableFIFO holds
// what is out of order, and SegmentToUser brings the rest, in order, to Resize and
// the endpoint.
package ctp
