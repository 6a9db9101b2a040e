package seal

// Bounds of numbers. A key seals KeyFrames frames, then the next one is derived: the
// bound of RFC 9001 §6.6 for AES-GCM, which holds for frames of any length here.
const (
	KeyFrames  = 1 << 23
	MaxNumbers = 1 << 62
)

// Flow is the part of a protected session that outlives its keys: numbers go on when
// the keys change, so that no number is used twice whatever the keys do. One Flow
// belongs to one session and to one composite at a time. Its zero value is a session
// that has sent and received nothing.
type Flow struct {
	sent   uint64 // the next number to send under
	window window
	counts Counts
}

// Counts tell what a flow refused, and why.
type Counts struct {
	Forged   uint64 // not sealed by the other end under the present keys, or changed on the way
	Replayed uint64 // its number had come before
	Old      uint64 // its number is further behind than the window reaches
	Short    uint64 // no room for a tag
	Dropped  uint64 // for want of memory
}

// Counts returns what was refused so far.
func (f *Flow) Counts() Counts { return f.counts }

// Sent is how many numbers have been used.
func (f *Flow) Sent() uint64 { return f.sent }
