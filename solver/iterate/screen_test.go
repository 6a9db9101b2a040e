package iterate

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Every message of one peer to another whose numbers no peer has is refused where it arrives, before anything is done with
// it. In a run that may diverge, a sum that is not finite may be true.
func TestImpossibleMessages(t *testing.T) {
	const haloBytes = 16
	sum := func(values ...float64) (s kernel.Sum) {
		for _, v := range values {
			s.Add(v)
		}
		return s
	}
	values := func(v float64) []byte {
		return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), haloBytes/8)
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name       string
		m          Message
		possible   bool
		mayDiverge bool // it is possible in a run that may diverge
	}{
		{"captured", Message{Kind: MsgCaptured, Values: values(1)}, true, true},
		{"captured NaN", Message{Kind: MsgCaptured, Values: values(nan)}, false, false},
		{"captured too large", Message{Kind: MsgCaptured, Values: values(1e300)}, false, true},
		{"plane NaN", Message{Kind: MsgPlane, Values: values(nan)}, false, false},
		{"plane too large", Message{Kind: MsgPlane, Values: values(-1e300)}, false, true},
		{"layers Inf", Message{Kind: MsgLayers, Values: values(inf)}, false, false},
		{"correction too large", Message{Kind: MsgCorrection, Values: values(1e300)}, false, true},
		{"shares Inf", Message{Kind: MsgShares, Values: values(inf)}, true, true},
		{"shares NaN", Message{Kind: MsgShares, Values: values(nan)}, false, false},
		{"residual", Message{Kind: MsgResidual, Squares: sum(1), Start: sum(1e300)}, true, true},
		{"residual NaN", Message{Kind: MsgResidual, Squares: sum(nan)}, false, true},
		{"residual Inf", Message{Kind: MsgResidual, Squares: sum(inf)}, false, true},
		{"residual overflow", Message{Kind: MsgResidual, Squares: sum(math.MaxFloat64, math.MaxFloat64)}, false, true},
		{"residual negative", Message{Kind: MsgResidual, Squares: sum(-1)}, false, false},
		{"reference NaN", Message{Kind: MsgResidual, Start: sum(nan)}, false, true},
		{"reference negative", Message{Kind: MsgResidual, Start: sum(-1e-300)}, false, false},
		{"estimate NaN", Message{Kind: MsgEstimate, A: nan}, false, true},
		{"estimate negative", Message{Kind: MsgEstimate, A: -1}, false, false},
		{"verdict", Message{Kind: MsgVerdict, A: 0.5, B: 2}, true, true},
		{"verdict NaN", Message{Kind: MsgVerdict, A: nan, B: 2, Reason: Diverged}, false, true},
		{"verdict negative", Message{Kind: MsgVerdict, A: -0.5, B: 2}, false, false},
		{"verdict norm Inf", Message{Kind: MsgVerdict, A: 0.5, B: inf}, false, true},
	} {
		for _, largest := range []float64{0, 1e45} {
			m, err := decodeMessage(c.m.Encode(), haloBytes)
			require.NoError(t, err, c.name)
			p := &Coordination{Config: Config{Largest: largest}}
			err = m.check(p.screenOf(NewChannel(1, haloBytes, Synchronous())))
			if c.possible || largest == 0 && c.mayDiverge {
				require.NoError(t, err, c.name)
			} else {
				require.ErrorIs(t, err, kernel.ErrImpossible, c.name)
			}
		}
	}
}
