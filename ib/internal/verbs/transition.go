package verbs

import (
	"cmp"
	"fmt"
	"strings"
)

// transition is a row of IBTA table 91, without the drained send queue: the attributes that must and may be given,
// for both transports and for RC alone.
type transition struct {
	from, to     PairState
	must, mustRC Mask
	may, mayRC   Mask
}

func transitions() []transition {
	const where = MaskPartitionKey | MaskPort | MaskAccess
	return []transition{
		{from: Reset, to: Init, must: where},
		{from: Init, to: Init, may: where},
		{
			from: Init, to: ReadyToReceive,
			must:   MaskPath | MaskPathMTU | MaskRemote | MaskReceivePSN,
			mustRC: MaskPendingReads | MaskRNRTimer,
			may:    MaskAccess | MaskPartitionKey,
		},
		{
			from: ReadyToReceive, to: ReadyToSend,
			must:   MaskSendPSN,
			mustRC: MaskTimeout | MaskRetries | MaskRNRRetries | MaskInitiatedReads,
			may:    MaskAccess, mayRC: MaskRNRTimer,
		},
		{from: ReadyToSend, to: ReadyToSend, may: MaskAccess, mayRC: MaskRNRTimer},
	}
}

// CheckTransition checks whether a pair may go from one state to another with the attributes in
// m. The error wraps ErrState if there is no such transition, and ErrAttributes if attributes
// are missing or not allowed, which it names. Without MaskState in m, to must equal from.
func CheckTransition(t Transport, from, to PairState, m Mask) error {
	must, may, legal := masks(t, from, to)
	if !legal {
		return fmt.Errorf("%w: a queue pair cannot go from %v to %v", ErrState, from, to)
	}
	given := m &^ MaskState
	if missing, over := must&^given, given&^(must|may); missing != 0 || over != 0 {
		return fmt.Errorf("%w (%v, %v to %v): missing [%v], not allowed [%v]", ErrAttributes, t, from, to, missing, over)
	}
	return nil
}

// masks returns the attributes that a transition must and may have, and whether it exists.
func masks(t Transport, from, to PairState) (must, may Mask, legal bool) {
	if to == Reset || to == Error {
		return 0, 0, true
	}
	for _, r := range transitions() {
		if r.from != from || r.to != to {
			continue
		}
		must, may = r.must, r.may
		if t == RC {
			must, may = must|r.mustRC, may|r.mayRC
		}
		return must, may, true
	}
	return 0, 0, false
}

// String names the attributes in the order of their bits.
func (m Mask) String() string {
	names := map[Mask]string{
		MaskState: "state", MaskAccess: "access flags", MaskPartitionKey: "partition key index", MaskPort: "port",
		MaskPath: "path", MaskPathMTU: "path MTU", MaskTimeout: "timeout", MaskRetries: "retries",
		MaskRNRRetries: "RNR retries", MaskReceivePSN: "receive PSN", MaskInitiatedReads: "initiated reads",
		MaskRNRTimer: "RNR timer", MaskSendPSN: "send PSN", MaskPendingReads: "pending reads",
		MaskRemote: "remote queue pair",
	}
	var out []string
	for bit := Mask(1); bit != 0; bit <<= 1 {
		if m&bit != 0 {
			out = append(out, cmp.Or(names[bit], fmt.Sprintf("%#x", uint32(bit))))
		}
	}
	return strings.Join(out, ", ")
}
