package ether

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// A change of these bytes needs a new version of the offer.
func TestProbeGolden(t *testing.T) {
	p := probe{kind: probeAsks, route: 3, round: 0x01020304, key: 0x1112131415161718,
		withdrawn: netip.MustParseAddr("192.0.2.9")}
	b := p.append(nil)
	require.Equal(t, []byte{0xf1, 3, 0, 0, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 9}, b)
	back, ok := decodeProbe(b, p.key)
	require.True(t, ok)
	require.Equal(t, p, back)
	_, ok = decodeProbe(b, p.key+1)
	require.False(t, ok, "the key of another link")
}

func FuzzProbe(f *testing.F) {
	for _, p := range []probe{{kind: probeAsks, key: 7}, {kind: probeAnswers, route: 255, round: 1<<32 - 1, key: 7},
		{kind: probeAsks, key: 7, withdrawn: netip.MustParseAddr("fd00::1")}} {
		f.Add(p.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := decodeProbe(b, 7); ok {
			again := p.append(nil)
			q, ok := decodeProbe(again, 7)
			require.True(t, ok)
			require.Equal(t, p, q)
		}
	})
}

// The kernel joins datagrams of one size, and a shorter last one: probes are found among the frames.
func TestProbesAmongFrames(t *testing.T) {
	l, err := Open(Config{Listen: "127.0.0.1"})
	require.NoError(t, err)
	defer l.Close()
	o, err := l.Offer("")
	require.NoError(t, err)
	self, err := l.Accept(o)
	require.NoError(t, err)
	b := probe{kind: probeAnswers, route: 200, round: 9, key: l.key}
	probe := b.append(nil)
	frame := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = 0xf1
		}
		return b
	}
	for _, c := range []struct {
		size  int
		parts [][]byte
	}{
		{100, [][]byte{frame(100), frame(100), probe}},
		{100, [][]byte{frame(100), frame(32)}},
		{32, [][]byte{probe, frame(32), probe, probe, frame(32), frame(5)}},
		{32, [][]byte{frame(32), frame(32)}},
		{32, [][]byte{probe}},
		{8, [][]byte{frame(8), frame(8), frame(8), frame(8)}},
	} {
		var in, want []byte
		for _, p := range c.parts {
			in = append(in, p...)
			if string(p) != string(probe) {
				want = append(want, p...)
			}
		}
		n := len(in)
		if mayHoldProbe(in, c.size) {
			n = l.cables.take(self, source{}, in, c.size)
		}
		require.Equal(t, string(want), string(in[:n]))
	}
	require.False(t, mayHoldProbe(frame(1400), 1400))
	require.Zero(t, testing.AllocsPerRun(100, func() { mayHoldProbe(probe, 32) }))
}
