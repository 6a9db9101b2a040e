package netlab

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// packet4 returns a UDP packet from 10.0.0.1 to 10.0.0.2 whose payload counts up.
func packet4(size int, flags uint16) []byte {
	ip := make([]byte, size)
	for i := range ip {
		ip[i] = byte(i)
	}
	copy(ip, []byte{0x45, 0, byte(size >> 8), byte(size), 0xab, 0xcd, byte(flags >> 8), byte(flags), 64, 17, 0, 0, 10,
		0, 0, 1, 10, 0, 0, 2})
	setChecksum4(ip[:header4])
	return ip
}

func packet6(size int) []byte {
	ip := make([]byte, size)
	copy(ip, []byte{0x60, 0, 0, 0, byte((size - header6) >> 8), byte(size - header6), 17, 64})
	ip[23], ip[39] = 1, 2
	return ip
}

func TestCut(t *testing.T) {
	whole := packet4(1500, 0)
	pieces := fragment(whole, 600)
	require.Len(t, pieces, 3)
	var payload []byte
	for i, p := range pieces {
		require.LessOrEqual(t, len(p), 600)
		require.EqualValues(t, len(p), binary.BigEndian.Uint16(p[2:]))
		require.Equal(t, whole[4:6], p[4:6], "identification")
		require.EqualValues(t, 0xffff, sum(0, p[:header4]), "checksum")
		field := binary.BigEndian.Uint16(p[6:])
		require.Equal(t, len(payload), 8*int(field&0x1fff))
		require.Equal(t, i < 2, field&moreFragments != 0)
		payload = append(payload, p[header4:]...)
	}
	require.Equal(t, whole[header4:], payload)
	// A fragment of a fragment keeps its offset and has the flag for more fragments.
	again := fragment(pieces[1], 300)
	require.Len(t, again, 3)
	last := binary.BigEndian.Uint16(again[2][6:])
	require.NotZero(t, last&moreFragments)
	require.EqualValues(t, (576+2*280)/8, last&0x1fff)
}

func TestTooBig(t *testing.T) {
	answer := tooBigMessage(packet4(1500, dontFragment), 1400)
	require.EqualValues(t, 0xffff, sum(0, answer[:header4]))
	require.EqualValues(t, 0xffff, sum(0, answer[header4:]))
	require.Equal(t, []byte{10, 0, 0, 2, 10, 0, 0, 1}, answer[12:20])
	require.Equal(t, []byte{3, 4}, answer[20:22])
	require.EqualValues(t, 1400, binary.BigEndian.Uint16(answer[26:]))
	require.Equal(t, packet4(1500, dontFragment)[:header4+8], answer[28:])
	require.Nil(t, tooBigMessage(answer, 40), "an answer to an answer")

	answer = tooBigMessage(packet6(1500), 1300)
	require.Len(t, answer, minMTU6)
	pseudo := sum(sum(0, answer[8:40]), []byte{0, 0, 1240 >> 8, 1240 & 0xff, 0, 0, 0, protocolICMP6})
	require.EqualValues(t, 0xffff, sum(pseudo, answer[header6:]))
	require.EqualValues(t, 1300, binary.BigEndian.Uint32(answer[44:]))
	require.Nil(t, tooBigMessage(answer, 40))
	require.Nil(t, tooBigMessage([]byte{0x45, 0}, 40))
	require.Nil(t, tooBigMessage(nil, 40))
}

// A path with a smaller MTU fragments a packet if that is allowed, and else answers unless it is silent.
func TestPathMTU(t *testing.T) {
	feed := func(c Conditions, ip []byte) (*path, []byte) {
		p := newPath(c, 1, &pool{size: 2000})
		return p, p.accept(0, p.pool.copied(ip))
	}
	p, answer := feed(Conditions{MTU: 600}, packet4(1500, 0))
	require.Nil(t, answer)
	require.Equal(t, 3, p.held())
	require.Equal(t, Counters{In: 1, Fragments: 2}, p.count)
	p, answer = feed(Conditions{MTU: 600}, packet4(1500, dontFragment))
	require.NotNil(t, answer)
	require.EqualValues(t, 1, p.count.Dropped[TooLarge])
	p, answer = feed(Conditions{MTU: 600, Silent: true}, packet6(1500))
	require.Nil(t, answer)
	require.EqualValues(t, 1, p.count.Dropped[TooLarge])
	_, answer = feed(Conditions{MTU: 1500}, packet6(1500))
	require.Nil(t, answer)
}
