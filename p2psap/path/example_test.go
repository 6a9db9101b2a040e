package path_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/p2psap/path"
)

// Two hosts with a router between them are in one cluster if the round trip is short.
func ExampleLocate() {
	host := func(name, address string) path.Placement {
		return path.Placement{Host: name, Addresses: []netip.Prefix{netip.MustParsePrefix(address)}}
	}
	e := path.Evidence{Local: host("a", "10.0.0.1/24"), Remote: host("b", "10.0.1.1/24"), RTT: 400 * time.Microsecond}
	f := path.Locate(e)
	fmt.Println(f.Locality, "-", f.Reason)
	// Output:
	// same cluster - different hosts, no network in common, round trip 400µs (near: at most 1ms)
}
