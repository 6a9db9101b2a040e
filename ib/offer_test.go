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

func sampleOffer() offer {
	return offer{name: "peer-7", offerFields: offerFields{
		Version: offerVersion, Layer: verbs.LayerInfiniBand, MTU: 4096, LID: 0x1234,
		GID: netip.MustParseAddr("fe80::2:c903:0:1a2b").As16(), GIDKind: verbs.GIDInfiniBand,
		Subnet: 0xfe80 << 48, BlockBytes: 8128, Credit: 58, Incarnation: 0x1122334455667788, Generation: 9,
		RC: endpoint{0x11, 0xabcdef}, UC: endpoint{0x12, 0xfffffe},
		Slots: 64, Address: 0x7f00_0000_1000, Key: 0xdeadbeef,
	}}
}

// The format is fixed, since peers may run different builds.
func TestOfferGolden(t *testing.T) {
	o := sampleOffer()
	mptest.Golden(t, "offer.hex", hex.Dump(o.append(nil)))
	got, err := decodeOffer(o.append(nil))
	require.NoError(t, err)
	require.Equal(t, o, got)
}

func TestOfferRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		u := func(name string, most uint64) uint64 { return rapid.Uint64Range(0, most).Draw(rt, name) }
		o := offer{name: string(rapid.SliceOfN(rapid.Byte(), 1, 255).Draw(rt, "name")), offerFields: offerFields{
			Version: offerVersion, Layer: verbs.LinkLayer(1 + u("layer", 1)),
			MTU: 256 << u("mtu", 4), LID: uint16(u("lid", 65535)),
			GIDKind: verbs.GIDKind(u("kind", 3)),
			GID:     [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "gid")),
			Subnet:  u("subnet", 1<<63), BlockBytes: uint32(minBlockBytes + u("block", 1<<20)),
			Credit:      uint16(1 + u("credit", maxReceives-1)),
			Incarnation: u("incarnation", 1<<63), Generation: uint32(u("generation", 1<<32-1)),
			RC:    endpoint{uint32(1 + u("rc", mask24-1)), uint32(u("rc psn", mask24))},
			UC:    endpoint{uint32(1 + u("uc", mask24-1)), uint32(u("uc psn", mask24))},
			Slots: uint16(u("slots", maxSlots)), Address: u("address", 1<<47), Key: uint32(u("key", 1<<32-1)),
		}}
		got, err := decodeOffer(o.append(nil))
		require.NoError(rt, err)
		require.Equal(rt, o, got)
	})
}

func TestOfferRefused(t *testing.T) {
	good := sampleOffer()
	for name, spoil := range map[string]func(*offer){
		"no name": func(o *offer) { o.name = "" }, "layer": func(o *offer) { o.Layer = 3 },
		"mtu": func(o *offer) { o.MTU = 1500 }, "block": func(o *offer) { o.BlockBytes = 100 },
		"huge block": func(o *offer) { o.BlockBytes = maxBlockBytes + 1 }, "window": func(o *offer) { o.Credit = 0 },
		"pair": func(o *offer) { o.RC.Number = 1 << 24 }, "no pair": func(o *offer) { o.UC.Number = 0 },
		"psn": func(o *offer) { o.UC.PSN = 1 << 24 }, "slots": func(o *offer) { o.Slots = maxSlots + 1 },
		"kind": func(o *offer) { o.GIDKind = 9 }, "window that wraps": func(o *offer) { o.Address = 1<<64 - 100 },
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
	o := sampleOffer()
	f.Add(o.append(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOffer(b)
		if err == nil && !bytes.Equal(o.append(nil), b) {
			t.Fatalf("%x is accepted, and is %x written again", b, o.append(nil))
		}
	})
}

// For any offer Accept returns a connection or an error, and a failed connection leaves nothing
// open.
func FuzzAccept(f *testing.F) {
	o := sampleOffer()
	f.Add(o.append(nil))
	o.LID, o.Slots = 1, 0
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

func TestCompatible(t *testing.T) {
	mine := sampleOffer()
	mine.name = "me"
	ether := func(o *offer) {
		o.Layer, o.LID, o.GIDKind = verbs.LayerEthernet, 0, verbs.GIDRoCEv2
	}
	for _, c := range []struct {
		change func(mine, their *offer)
		fabric bool
		want   string
	}{
		{func(_, _ *offer) {}, false, ""},
		{func(m, their *offer) { ether(m); ether(their) }, false, ""},
		{func(_, their *offer) { their.MTU = 1024 }, false, ""}, // the smaller MTU is used
		{func(_, their *offer) { their.Credit = 3; their.Slots = 0 }, false, ""},
		{func(_, their *offer) { their.name = "me" }, false, "same name as this end"},
		{func(_, their *offer) { ether(their) }, true, "runs on InfiniBand, that of \"peer-7\" on Ethernet"},
		{func(_, their *offer) { their.Subnet++ }, true, "fe80000000000001"},
		{func(_, their *offer) { their.LID = 0 }, true, "subnet manager"},
		{func(m, their *offer) { ether(m); ether(their); their.GIDKind = verbs.GIDRoCEv1 }, true, "of one kind"},
		{func(_, their *offer) { their.BlockBytes = 4096 }, false, "blocks of 4096 bytes, this end of 8128"},
	} {
		m, their := mine, sampleOffer()
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
