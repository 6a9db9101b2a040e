package path

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func TestLocate(t *testing.T) {
	lan, far := prefixes("10.1.0.1/16"), prefixes("192.168.7.3/24")
	near := prefixes("10.1.2.3/16", "192.168.9.1/24")
	for _, x := range []struct {
		what         string
		mine, theirs Placement
		rtt          time.Duration
		want         Locality
		why          string
	}{
		{"one process", Placement{Host: "h", Process: 1}, Placement{Host: "h", Process: 1}, 0, SameProcess, "one process"},
		{"one host", Placement{Host: "h", Process: 1}, Placement{Host: "h", Process: 2}, time.Second, SameHost,
			"two processes of one host"},
		{"labels on one host", Placement{Host: "h", Process: 1, Cluster: "a"},
			Placement{Host: "h", Process: 1, Cluster: "b"}, 1, OtherCluster, `"a" and "b"`},
		{"one label, one host", Placement{Host: "h", Process: 1, Cluster: "a"},
			Placement{Host: "h", Process: 2, Cluster: "a"}, 0, SameHost, "one host"},
		{"one label, far apart", Placement{Host: "h", Cluster: "a", Addresses: lan},
			Placement{Host: "g", Cluster: "a", Addresses: far}, time.Second, SameCluster, `the label "a"`},
		{"a label at one end", Placement{Host: "h", Cluster: "a"}, Placement{Host: "h"}, 1, OtherCluster, `(none) and "a"`},
		{"no addresses", Placement{Host: "h", Addresses: lan}, Placement{Host: "g"}, time.Second, SameCluster,
			"nothing is known"},
		{"no host", Placement{Addresses: lan}, Placement{Host: "g", Addresses: far}, time.Second, SameCluster,
			"nothing is known"},
		{"near", Placement{Host: "h", Addresses: lan}, Placement{Host: "g", Addresses: far}, NearRTT, SameCluster,
			"no network in common, round trip 1ms"},
		{"behind a router", Placement{Host: "h", Addresses: lan}, Placement{Host: "g", Addresses: far}, NearRTT + 1,
			OtherCluster, "no network in common"},
		{"one network", Placement{Host: "h", Addresses: lan}, Placement{Host: "g", Addresses: near}, NetworkRTT,
			SameCluster, "both in 10.1.0.0/16, round trip 2ms"},
		{"a network stretched far", Placement{Host: "h", Addresses: lan}, Placement{Host: "g", Addresses: near},
			NetworkRTT + 1, OtherCluster, "both in 10.1.0.0/16"},
		{"one network, not measured", Placement{Host: "h", Addresses: lan}, Placement{Host: "g", Addresses: near}, 0,
			SameCluster, "no round trip measured"},
		{"nothing in common, not measured", Placement{Host: "h", Addresses: lan}, Placement{Host: "g", Addresses: far}, 0,
			OtherCluster, "no round trip measured"},
	} {
		t.Run(x.what, func(t *testing.T) {
			f := Locate(Evidence{Local: x.mine, Remote: x.theirs, RTT: x.rtt})
			require.Equal(t, x.want, f.Locality, f.Reason)
			require.Contains(t, f.Reason, x.why)
			require.Equal(t, x.rtt, f.RTT)
		})
	}
}

func TestCommonNetwork(t *testing.T) {
	for _, x := range []struct {
		what string
		a, b []netip.Prefix
		want string // "": none
	}{
		{"one", prefixes("10.0.0.1/24"), prefixes("10.0.0.2/24"), "10.0.0.0/24"},
		{"the narrowest", prefixes("10.0.0.1/8", "192.168.0.1/24"), prefixes("192.168.0.2/24", "10.9.9.9/8"),
			"192.168.0.0/24"},
		{"the lowest of two", prefixes("10.0.1.1/24", "10.0.0.1/24"), prefixes("10.0.1.2/24", "10.0.0.2/24"), "10.0.0.0/24"},
		{"masks that differ", prefixes("10.0.0.1/24"), prefixes("10.0.0.2/16"), "10.0.0.0/24"},
		{"masks that exclude one", prefixes("10.0.0.1/24"), prefixes("10.0.9.2/16"), ""},
		{"a bridge that each host has", prefixes("172.17.0.1/16"), prefixes("172.17.0.1/16"), ""},
		{"point to point", prefixes("10.0.0.1/32"), prefixes("10.0.0.1/32"), ""},
		{"loopback", prefixes("127.0.0.1/8", "::1/128"), prefixes("127.0.0.2/8"), ""},
		{"link local", prefixes("fe80::1/64", "169.254.1.1/16"), prefixes("fe80::2/64", "169.254.1.2/16"), ""},
		{"IPv6", prefixes("fd00::1/64"), prefixes("fd00::2/64"), "fd00::/64"},
		{"everything", prefixes("1.2.3.4/0"), prefixes("5.6.7.8/0"), ""},
		{"not known", nil, prefixes("10.0.0.2/24"), ""},
	} {
		t.Run(x.what, func(t *testing.T) {
			n, found := CommonNetwork(x.a, x.b)
			require.Equal(t, x.want != "", found)
			if found {
				require.Equal(t, x.want, n.String())
			}
		})
	}
}

func anyPlace(t *rapid.T, of string) Placement {
	p := Placement{
		Host: rapid.SampledFrom([]string{"", "g", "h"}).Draw(t, of+" host"), Process: rapid.Uint64Range(1, 2).Draw(t,
			of+" process"),
		Cluster: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, of+" cluster"),
	}
	for range rapid.IntRange(0, 3).Draw(t, of+" addresses") {
		ip := netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(0, 1).Draw(t, of+" net")), 0,
			byte(rapid.IntRange(1, 3).Draw(t, of+" host part"))})
		p.Addresses = append(p.Addresses, netip.PrefixFrom(ip, rapid.SampledFrom([]int{8, 16, 24, 32}).Draw(t, of+" bits")))
	}
	return p
}

// Both ends must agree, or their session is refused; and a longer round trip never
// brings two peers nearer.
func TestLocateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Evidence{Local: anyPlace(t, "my"), Remote: anyPlace(t, "their"),
			RTT: time.Duration(rapid.Int64Range(0, int64(4*time.Millisecond)).Draw(t, "rtt"))}
		f := Locate(e)
		require.Equal(t, f, Locate(Evidence{Local: e.Remote, Remote: e.Local, RTT: e.RTT}))
		require.NotEmpty(t, f.Reason)
		if e.RTT > 0 {
			e.RTT += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "longer"))
			require.GreaterOrEqual(t, Locate(e).Locality, f.Locality)
		}
	})
}
