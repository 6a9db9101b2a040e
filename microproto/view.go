package microproto

// View is a received message in the memory where it arrived: that of the link's frames, or of the channel. It spares
// the copy to memory of the user. The zero value is empty. A View that is used again and again allocates nothing.
type View struct {
	// Pieces are the bytes of the message in order. Each but the last is a multiple of 8 bytes long. They are valid
	// until the View is released or has received two more messages.
	Pieces [][]byte

	frames []memory // in whose memory the pieces lie
	memory []byte   // in which they lie otherwise
	// What the View held before: a user may need it until the new message has replaced it everywhere.
	last struct {
		pieces [][]byte
		frames []memory
		memory []byte
	}
}

// Release gives back the memory of frames, which a link may be waiting for.
func (v *View) Release() {
	v.ReleaseLast()
	v.turn()
	v.ReleaseLast()
}

// ReleaseLast is Release of all messages but the newest.
func (v *View) ReleaseLast() {
	for i := range v.last.frames {
		v.last.frames[i].release()
	}
	v.last.frames, v.last.pieces = v.last.frames[:0], v.last.pieces[:0]
}

// turn empties the View for a new message and keeps what it holds.
func (v *View) turn() {
	v.ReleaseLast()
	v.frames, v.last.frames = v.last.frames, v.frames
	v.Pieces, v.last.pieces = v.last.pieces, v.Pieces
}

// Keep sets the View to the payloads of messages. Their memory stays valid after the messages have ended.
func (v *View) Keep(messages []*Message) {
	v.turn()
	for _, m := range messages {
		v.frames = append(v.frames, m.frame.retain())
		for i := range m.Segments() {
			v.Pieces = append(v.Pieces, m.Piece(i))
		}
	}
}

// Swap sets the View to data and returns other memory, which the View does not need any more; nil: it has none.
func (v *View) Swap(data []byte) (free []byte) {
	v.turn()
	free, v.last.memory, v.memory = v.last.memory, v.memory, data
	v.Pieces = append(v.Pieces, data)
	return free
}

// Memory returns the n bytes that Show will show. They keep their contents from one call to the next.
func (v *View) Memory(n int) []byte {
	if len(v.memory) != n {
		v.memory = make([]byte, n)
	}
	return v.memory
}

// Show sets the View to the bytes of Memory.
func (v *View) Show() {
	if len(v.Pieces) != 1 || len(v.memory) > 0 && &v.Pieces[0][0] != &v.memory[0] {
		v.turn()
		v.Pieces = append(v.Pieces, v.memory)
	}
}
