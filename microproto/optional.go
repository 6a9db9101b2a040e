package microproto

// StateExporter is an optional interface of micro-protocols that measure the path. When
// a session changes its composition, the session passes the measured state to the
// micro-protocol of the same name in the next composition that has one. Messages may be in
// flight, so the state must not contain their numbers.
type StateExporter interface {
	MicroProtocol
	// ExportState returns the state. The micro-protocol continues to work afterwards.
	ExportState() State
	// ImportState takes a state that ExportState of a micro-protocol of the same name
	// returned. It is called before the composite is opened. An error fails the session.
	ImportState(s State) error
}

// Prober is an optional interface of micro-protocols that notice that long segments do
// not get through: the path's largest frame has become smaller.
type Prober interface {
	MicroProtocol
	// Stuck reports whether a long segment does not get through however often it is sent.
	Stuck() bool
	// Probe asks the other end for an acknowledgement, in a frame without payload.
	Probe(x *Exec)
}

// Names of cells that the layer above reads with CompositeCell. A micro-protocol that
// measures one of these declares the cell; all of them are optional.
const (
	CellSegmentBytes  = "segment.bytes"          // int: largest payload of a segment
	CellRetransmitted = "segments.retransmitted" // uint64: segments sent again
	CellOverwritten   = "values.overwritten"     // uint64: asynchronous values replaced before they were received
	// CellReplaced counts, as uint64, segments that wait for the network and are replaced
	// by newer values.
	CellReplaced = "segments.replaced"
	// CellLinkBusy, a bool, is true while frames wait because the link is full. The layer above sets it. A
	// micro-protocol that declares it keeps segments back meanwhile, so that newer values can replace them.
	CellLinkBusy = "link.busy"
	CellRTT      = "path.rtt"     // time.Duration: smoothed round trip; 0: not measured
	CellMinRTT   = "path.rtt.min" // time.Duration: smallest round trip since the reader set it to 0
)
