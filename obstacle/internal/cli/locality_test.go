package cli

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/p2psap"
)

func TestEvidenceOf(t *testing.T) {
	mine := []host.Interface{
		{Name: "lo", Loopback: true, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
		{Name: "eth0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/24"), netip.MustParsePrefix("fe80::5/64")}},
	}
	for _, x := range []struct {
		peer string
		rtt  time.Duration
		want p2psap.Locality
	}{
		{"127.0.0.9", time.Millisecond, p2psap.SameHost},
		{"10.0.0.5", time.Microsecond, p2psap.SameHost},
		{"10.0.0.6", 1500 * time.Microsecond, p2psap.SameCluster},
		{"10.0.0.6", 2500 * time.Microsecond, p2psap.OtherCluster},
		{"10.0.1.6", 500 * time.Microsecond, p2psap.SameCluster},
		{"10.0.1.6", 1500 * time.Microsecond, p2psap.OtherCluster},
		{"2001:db8::1", 20 * time.Millisecond, p2psap.OtherCluster},
	} {
		f := p2psap.Locate(evidenceOf(mine, netip.MustParseAddr(x.peer), x.rtt))
		require.Equal(t, x.want, f.Locality, "%s %v: %s", x.peer, x.rtt, f.Reason)
	}
}
