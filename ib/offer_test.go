package ib

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

func someOffer() offer {
	return offer{
		name: "peer-7", layer: verbs.LayerInfiniBand, mtu: 4096, lid: 0x1234,
		gid:    verbs.GID{Addr: netip.MustParseAddr("fe80::2:c903:0:1a2b"), Kind: verbs.GIDInfiniBand},
		subnet: 0xfe80 << 48, blockBytes: 8128, credit: 58, incarnation: 0x1122334455667788, generation: 9,
		rc: endpoint{0x11, 0xabcdef}, uc: endpoint{0x12, 0xfffffe},
		slots: 64, address: 0x7f00_0000_1000, key: 0xdeadbeef,
	}
}

// The layout is fixed: peers of different builds must understand each other.
func TestOfferGolden(t *testing.T) {
	o := someOffer()
	mptest.Golden(t, "offer.hex", hex.Dump(o.append(nil)))
	got, err := decodeOffer(o.append(nil))
	require.NoError(t, err)
	require.Equal(t, o, got)
}

func TestOfferRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		u := func(name string, most uint64) uint64 { return rapid.Uint64Range(0, most).Draw(rt, name) }
		o := offer{
			name: string(rapid.SliceOfN(rapid.Byte(), 1, 255).Draw(rt, "name")), layer: verbs.LinkLayer(1 + u("layer", 1)),
			mtu: 256 << u("mtu", 4), lid: uint16(u("lid", 65535)),
			gid:    verbs.GID{Kind: verbs.GIDKind(u("kind", 3)), Addr: netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "gid")))},
			subnet: u("subnet", 1<<63), blockBytes: int(minBlockBytes + u("block", 1<<20)), credit: int(1 + u("window", maxReceives-1)),
			incarnation: u("incarnation", 1<<63), generation: uint32(u("generation", 1<<32-1)),
			rc:    endpoint{uint32(1 + u("rc", mask24-1)), uint32(u("rc psn", mask24))},
			uc:    endpoint{uint32(1 + u("uc", mask24-1)), uint32(u("uc psn", mask24))},
			slots: int(u("slots", maxSlots)), address: u("address", 1<<47), key: uint32(u("key", 1<<32-1)),
		}
		got, err := decodeOffer(o.append(nil))
		require.NoError(rt, err)
		require.Equal(rt, o, got)
	})
}

func TestOfferRefused(t *testing.T) {
	good := someOffer()
	for name, spoil := range map[string]func(*offer){
		"no name": func(o *offer) { o.name = "" }, "layer": func(o *offer) { o.layer = 3 },
		"mtu": func(o *offer) { o.mtu = 1500 }, "block": func(o *offer) { o.blockBytes = 100 },
		"huge block": func(o *offer) { o.blockBytes = maxBlockBytes + 1 }, "window": func(o *offer) { o.credit = 0 },
		"pair": func(o *offer) { o.rc.number = 1 << 24 }, "no pair": func(o *offer) { o.uc.number = 0 },
		"psn": func(o *offer) { o.uc.psn = 1 << 24 }, "slots": func(o *offer) { o.slots = maxSlots + 1 },
		"kind": func(o *offer) { o.gid.Kind = 9 }, "window that wraps": func(o *offer) { o.address = 1<<64 - 100 },
	} {
		o := good
		spoil(&o)
		_, err := decodeOffer(o.append(nil))
		require.ErrorIs(t, err, errOffer, name)
	}
	whole := good.append(nil)
	for n := range whole {
		_, err := decodeOffer(whole[:n])
		require.Error(t, err, "%d bytes", n)
	}
	_, err := decodeOffer(append(whole, 0))
	require.ErrorIs(t, err, errOffer)
	whole[0]++
	_, err = decodeOffer(whole)
	require.ErrorContains(t, err, "version 2, this end needs 1")
}

func FuzzOffer(f *testing.F) {
	o := someOffer()
	f.Add(o.append(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOffer(b)
		if err == nil && !bytes.Equal(o.append(nil), b) {
			t.Fatalf("%x is accepted, and is %x written again", b, o.append(nil))
		}
	})
}

// Whatever an offer says, Accept answers with a connection or an error, and nothing is
// left of what could not be made.
func FuzzAccept(f *testing.F) {
	o := someOffer()
	f.Add(o.append(nil))
	o.lid, o.slots = 1, 0
	f.Add(o.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRig(t, software.Config{})
		l := r.open("me", Config{SendBlocks: 16, ReceiveBlocks: 32, BlockBytes: 8128, Peers: 1, WindowSlots: 2})
		addr, err := l.Accept(b)
		if err == nil {
			again, err := l.Accept(b)
			require.NoError(t, err)
			require.Equal(t, addr, again)
		}
	})
}

func TestFits(t *testing.T) {
	mine := someOffer()
	mine.name = "me"
	ether := func(o *offer) {
		o.layer, o.lid, o.gid.Kind = verbs.LayerEthernet, 0, verbs.GIDRoCEv2
	}
	for _, c := range []struct {
		change func(mine, their *offer)
		fabric bool
		want   string
	}{
		{func(_, _ *offer) {}, false, ""},
		{func(m, their *offer) { ether(m); ether(their) }, false, ""},
		{func(_, their *offer) { their.mtu = 1024 }, false, ""}, // the smaller counts
		{func(_, their *offer) { their.credit = 3; their.slots = 0 }, false, ""},
		{func(_, their *offer) { their.name = "me" }, false, "same name as this end"},
		{func(_, their *offer) { ether(their) }, true, "runs on InfiniBand, that of \"peer-7\" on Ethernet"},
		{func(_, their *offer) { their.subnet++ }, true, "fe80000000000001"},
		{func(_, their *offer) { their.lid = 0 }, true, "subnet manager"},
		{func(m, their *offer) { ether(m); ether(their); their.gid.Kind = verbs.GIDRoCEv1 }, true, "of one kind"},
		{func(_, their *offer) { their.blockBytes = 4096 }, false, "blocks of 4096 bytes, this end of 8128"},
	} {
		m, their := mine, someOffer()
		c.change(&m, &their)
		err := m.compatible(&their)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
		if c.fabric {
			require.ErrorIs(t, err, ErrFabric)
		}
	}
}
