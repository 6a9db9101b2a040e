package microproto

// Public events, named after those of CTP (Wong, Hiltunen and Schlichting, INFOCOM 2001).
// Each comment says where the event is raised.
var (
	// OpenSession: by the kernel, once, in Composite.Open.
	OpenSession = NewEvent[struct{}]("open.session")
	// DrainSession: by the layer above, before the composition changes. The messages in flight
	// have to arrive first, so micro-protocols should shorten their time-outs.
	DrainSession = NewEvent[struct{}]("drain.session")
	// PathSilent: by the layer above, about once a second while nothing arrives from the other end.
	// Micro-protocols should send one segment that has timed out again, however long its next
	// time-out is.
	PathSilent = NewEvent[struct{}]("path.silent")
	// PathMoved: by the layer above, when the link has left a route on which frames were lost. Micro-protocols should
	// take what is in flight for lost, as when their time-out has passed.
	PathMoved = NewEvent[struct{}]("path.moved")
	// CloseSession: by the kernel, once, in Composite.Close.
	CloseSession = NewEvent[struct{}]("close.session")
	// MessageFromUser: by the kernel, in Composite.Submit.
	MessageFromUser = NewEvent[*Message]("message.from.user")
	// SegmentFromUser: by the micro-protocol that makes segments, for each of them; it then
	// calls Exec.Forward.
	SegmentFromUser = NewEvent[*Message]("segment.from.user")
	// SegmentReady: by the kernel, when a forwarded segment on its way down has no hold bit, and again
	// before each retransmission (Exec.Resend). A handler that holds the segment decides when it is
	// transmitted: it is behind the windows. Acknowledgements without payload are among the segments.
	SegmentReady = NewEvent[*Message]("segment.ready")
	// SegmentReplaced: by the kernel, when a newer value has replaced the payload of a segment that is held
	// (Exec.Replace).
	SegmentReplaced = NewEvent[*Message]("segment.replaced")
	// SegmentToNet: by the kernel, after SegmentReady, when the segment has no hold bit.
	SegmentToNet = NewEvent[*Message]("segment.to.net")
	// SegmentFromNet: by the kernel, in Composite.Input. The kernel then forwards the segment,
	// unless a handler halted the chain or the segment has ended.
	SegmentFromNet = NewEvent[*Message]("segment.from.net")
	// SegmentToUser: by the kernel, when a forwarded segment on its way up has no hold bit.
	SegmentToUser = NewEvent[*Message]("segment.to.user")
	// SegmentAcked: by a micro-protocol: the other end has received the segment.
	SegmentAcked = NewEvent[*Message]("segment.acked")
	// SegmentLost: by a micro-protocol: the segment is considered lost.
	SegmentLost = NewEvent[*Message]("segment.lost")
	// SegmentTimeout: by a micro-protocol: the segment was not acknowledged in time.
	SegmentTimeout = NewEvent[*Message]("segment.timeout")
)
