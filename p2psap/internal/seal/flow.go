package seal

// Bounds of numbers. A key seals KeyFrames frames, then the next key is derived: the bound of RFC
// 9001 §6.6 for AES-GCM, which holds for frames of any length here.
const (
	KeyFrames  = 1 << 23
	MaxNumbers = 1 << 62
)

// Flow is the part of a protected session that survives a change of its secrets: the numbers
// continue, so that none is used twice. A Flow belongs to one session, and to one composite at a
// time. Its zero value is a session that has sent and received nothing.
type Flow struct {
	sent   uint64 // the next number to send under
	window window
	counts Counts
}

// Counts are the numbers of refused frames, by reason.
type Counts struct {
	Forged   uint64 // not sealed by the other end under the present keys, or changed on the way
	Replayed uint64 // the number had arrived before
	Old      uint64 // the number is below the window
	Short    uint64 // shorter than a tag
	Dropped  uint64 // no memory
}

// Counts returns the numbers of refused frames so far.
func (f *Flow) Counts() Counts { return f.counts }

// Sent returns how many numbers were used.
func (f *Flow) Sent() uint64 { return f.sent }
