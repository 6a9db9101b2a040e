package microproto

// Public events, named after CTP's (Wong, Hiltunen and Schlichting, INFOCOM
// 2001). The kernel raises the ones marked so; micro-protocols raise the others.
var (
	// OpenSession: kernel, once, in Composite.Open.
	OpenSession = NewEvent[struct{}]("open.session")
	// DrainSession: the layer above, before the composition changes. What is in flight has
	// to arrive first, so long waits for an acknowledgement should become short.
	DrainSession = NewEvent[struct{}]("drain.session")
	// CloseSession: kernel, once, in Composite.Close.
	CloseSession = NewEvent[struct{}]("close.session")
	// MessageFromUser: kernel, in Composite.Submit.
	MessageFromUser = NewEvent[*Message]("message.from.user")
	// SegmentFromUser: by the micro-protocol that segments, once per segment,
	// followed by Exec.Forward.
	SegmentFromUser = NewEvent[*Message]("segment.from.user")
	// SegmentToNet: kernel, when a forwarded segment going down has no hold bit.
	SegmentToNet = NewEvent[*Message]("segment.to.net")
	// SegmentFromNet: kernel, in Composite.Input. When its chain was not halted
	// and the segment still lives, the kernel forwards it.
	SegmentFromNet = NewEvent[*Message]("segment.from.net")
	// SegmentToUser: kernel, when a forwarded segment going up has no hold bit.
	SegmentToUser = NewEvent[*Message]("segment.to.user")
	// SegmentAcked: the other end has the segment.
	SegmentAcked = NewEvent[*Message]("segment.acked")
	// SegmentLost: the segment is taken for lost.
	SegmentLost = NewEvent[*Message]("segment.lost")
	// SegmentTimeout: nothing was heard of the segment in time.
	SegmentTimeout = NewEvent[*Message]("segment.timeout")
)
