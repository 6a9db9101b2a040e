package microproto

// TrainReceiver is an optional interface of links that can return several frames as one.
type TrainReceiver interface {
	// RecvTrains is Recv, but leaves frames together that arrived together: see Frame.Segment. They
	// may belong to several messages and several sessions.
	RecvTrains(batch []Frame) (n int, err error)
}

// PollableLink is an optional interface of links that a caller can poll, or wait at until another
// goroutine wakes it.
type PollableLink interface {
	// TryRecv is Recv (RecvTrains, if the link has it) that never waits. It returns errors.ErrUnsupported, for
	// any batch, where the link can be neither polled nor waited at.
	TryRecv(batch []Frame) (n int, err error)
	// AwaitRecv is TryRecv that waits until a frame has arrived or Wake was called; then it may
	// return none.
	AwaitRecv(batch []Frame) (n int, err error)
	// Wake makes a Recv, RecvTrains or AwaitRecv that waits return, or else the next one.
	Wake()
}

// WaitableLink is an optional interface of links that can wait for a frame without taking it.
type WaitableLink interface {
	// Await waits until a frame has arrived and leaves it to the next TryRecv.
	Await() error
	// TryRecv is Recv that never waits.
	TryRecv(batch []Frame) (n int, err error)
}
