package ether

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

func offerGen(t *rapid.T) offer {
	o := offer{host: rapid.Uint64().Draw(t, "host"), key: rapid.Uint64().Draw(t, "key")}
	for range rapid.IntRange(1, maxCandidates).Draw(t, "count") {
		size := rapid.SampledFrom([]int{4, 16}).Draw(t, "size")
		b := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "address")
		ip, _ := netip.AddrFromSlice(b)
		if ip.IsUnspecified() || ip.IsMulticast() || ip.Is4In6() {
			ip = netip.MustParseAddr("10.0.0.1")
		}
		port := rapid.Uint16Min(1).Draw(t, "port")
		bits := rapid.IntRange(0, ip.BitLen()).Draw(t, "bits")
		o.candidates = append(o.candidates, candidate{netip.AddrPortFrom(ip, port), bits, rapid.Uint8().Draw(t, "interface")})
	}
	return o
}

func TestOfferRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := offerGen(t)
		b := o.append(nil)
		back, err := decodeOffer(b)
		require.NoError(t, err)
		require.Equal(t, o, back)
		for cut := range b {
			_, err := decodeOffer(b[:cut])
			require.Error(t, err, "cut to %d bytes", cut)
		}
		_, err = decodeOffer(append(b, 0))
		require.ErrorIs(t, err, errOffer)
	})
}

func TestOfferRefused(t *testing.T) {
	good := offer{candidates: []candidate{{netip.MustParseAddrPort("10.0.0.1:5000"), 24, 0}}}
	for name, c := range map[string]struct {
		at   int
		to   byte
		want string
	}{
		"version":  {0, 1, "version 1"},
		"none":     {17, 0, "0 addresses"},
		"too many": {17, 33, "33 addresses"},
		"size":     {18, 5, "5 bytes long"},
		"prefix":   {19, 33, "33 bits"},
		"group":    {21, 224, "not a unicast address"},
	} {
		b := good.append(nil)
		b[c.at] = c.to
		_, err := decodeOffer(b)
		require.ErrorContains(t, err, c.want, name)
	}
}

// A change of these bytes needs a new version of the offer.
func TestOfferGolden(t *testing.T) {
	o := offer{host: 0x0102030405060708, key: 0x1112131415161718, candidates: []candidate{
		{netip.MustParseAddrPort("192.0.2.9:4660"), 24, 0},
		{netip.MustParseAddrPort("[2001:db8::1]:22136"), 64, 3},
	}}
	require.Equal(t, []byte{2, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 2,
		4, 24, 0, 192, 0, 2, 9, 0x12, 0x34,
		16, 64, 3, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x56, 0x78}, o.append(nil))
}

func FuzzOffer(f *testing.F) {
	f.Add([]byte{})
	good := offer{host: 7, candidates: []candidate{
		{netip.MustParseAddrPort("10.0.0.1:5000"), 24, 0}, {netip.MustParseAddrPort("[fd00::1]:5000"), 64, 1}}}
	f.Add(good.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOffer(b)
		if err != nil {
			return
		}
		require.Equal(t, b, o.append(nil), "an offer has one encoding")
	})
}

func TestRank(t *testing.T) {
	const here, elsewhere = 1, 2
	at := netip.MustParseAddrPort
	for name, c := range map[string]struct {
		local  string
		inet4  bool
		host   uint64
		to     string
		rank   int
		reason string
	}{
		"loopback here":              {"127.0.0.1:1", true, here, "127.0.0.1:9", 0, ""},
		"loopback elsewhere":         {"127.0.0.1:1", true, elsewhere, "127.0.0.1:9", 0, "another host"},
		"host not known":             {"127.0.0.1:1", true, 0, "127.0.0.1:9", 0, ""},
		"all, loopback here":         {"[::]:1", false, here, "127.0.0.1:9", 0, ""},
		"all, loopback elsewhere":    {"[::]:1", false, elsewhere, "[::1]:9", 0, "another host"},
		"one, loopback":              {"203.0.113.5:1", true, here, "127.0.0.1:9", 0, "does not listen on loopback"},
		"loopback, one elsewhere":    {"127.0.0.1:1", true, elsewhere, "203.0.113.5:9", 0, "loopback only"},
		"far":                        {"203.0.113.5:1", true, elsewhere, "198.51.100.1:9", 2, ""},
		"other family":               {"203.0.113.5:1", true, elsewhere, "[2001:db8::1]:9", 0, "IPv4 only"},
		"other family of one":        {"[2001:db8::2]:1", false, elsewhere, "203.0.113.5:9", 0, "IPv6 only"},
		"both families":              {"[::]:1", false, elsewhere, "203.0.113.5:9", 2, ""},
		"link-local, one is not":     {"[2001:db8::2]:1", false, elsewhere, "[fe80::1]:9", 0, "link-local"},
		"link-local, this is so too": {"[fe80::2%lo]:1", false, elsewhere, "[fe80::1]:9", -1, ""},
	} {
		l := &Link{host: here, local: at(c.local), inet4: c.inet4}
		rank, reason := l.rank(candidate{addr: at(c.to)}, c.host)
		if c.reason != "" {
			require.Contains(t, reason, c.reason, name)
			continue
		}
		require.Empty(t, reason, name)
		if c.rank < 0 { // 1 or 2, depending on the host
			require.Positive(t, rank, name)
			continue
		}
		require.Equal(t, c.rank, rank, name)
	}
}

func TestPeerTableKeepsAddresses(t *testing.T) {
	s := func(n byte) source { return source{port: uint16(n)} }
	new := func(key uint64, ports ...uint16) *peer {
		var routes []destination
		for _, p := range ports {
			routes = append(routes, destination{to: netip.AddrPortFrom(netip.IPv6Loopback(), p)})
		}
		return newPeer(key, routes)
	}
	r := &peerTable{}
	p1, p2 := new(1, 1), new(2, 2)
	r1, a1, err := r.withPeer(p1, []source{s(1), s(11)})
	require.NoError(t, err)
	r2, a2, err := r1.withPeer(p2, []source{s(2), s(11)})
	require.NoError(t, err)
	r3, again, err := r2.withPeer(new(1, 1), []source{s(1)})
	require.NoError(t, err)
	require.Equal(t, a1, again)
	require.Same(t, p1, r3.peer(a1))
	require.Same(t, p2, r3.peer(a2))
	require.Equal(t, a1, r3.bySource[s(11)], "a source that is taken stays with its owner")
	require.Nil(t, r3.peer(0))
	require.Nil(t, r3.peer(a2+1))
	require.Nil(t, r1.peer(microproto.LinkAddr(2)), "rosters do not change")

	r4, again, err := r3.withPeer(new(3, 1, 9), []source{s(1), s(9)})
	require.NoError(t, err)
	require.Equal(t, a1, again)
	require.Same(t, p1, r4.peer(a1), "another peer that claims an address does not get the frames of the first")

	// A peer that connects again over another cable, while the first is down.
	r5, again, err := r4.withPeer(new(1, 3), []source{s(3), s(11)})
	require.NoError(t, err)
	require.Equal(t, a1, again)
	ports := func(p *peer) (out []uint16) {
		for _, d := range p.routes {
			out = append(out, d.to.Port())
		}
		return out
	}
	require.Equal(t, []uint16{1, 3}, ports(r5.peer(a1)))
	require.Equal(t, a1, r5.bySource[s(3)])
	require.Equal(t, []uint16{1}, ports(p1), "tables do not change")
}
