// Package rail decides over which networks a peer talks: the Ethernet rail, which is
// always there, and an InfiniBand rail beside it, by what the run wants, what this
// peer was told, and what its host offers.
package rail

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
)

// Words of --network.
const (
	Auto  = "auto"  // InfiniBand where both ends of a pair have it, Ethernet elsewhere
	Ether = "ether" // Ethernet
	IB    = "ib"    // InfiniBand, and nothing else
)

// Words of --ib-mode.
const (
	Segments = "segments"  // blocks of --ib-block-bytes, a segment each
	Messages = "messages"  // a message in one work request
	OneSided = "one-sided" // and asynchronous ones written in place at the other end
)

// Modes are the words of --ib-mode.
func Modes() []string { return []string{Segments, Messages, OneSided} }

// completions are the words of --ib-completion, the default first.
var completions = []string{"spin", "channel", "poll"}

// defaultBlockBytes is that of the published system.
const defaultBlockBytes = 8128

// Software is the word of --ib-device for the software adapter.
const Software = "software"

// Flags are those of one host. Peers that solve starts have its own.
type Flags struct {
	Network    string // "": as the run wants
	Device     string // "": the best
	Port       int
	GID        string
	Blocks     int // of each direction; 0: as many as the mode needs
	Completion string
}

// Add declares them.
func (f *Flags) Add(fl *pflag.FlagSet) {
	fl.StringVar(&f.Device, "ib-device", "", "RDMA device, as mlx5_0 (default: that of the fastest active port; obstacle doctor lists them)")
	fl.IntVar(&f.Port, "ib-port", 0, "port of the RDMA device, from 1 (0: the fastest active one)")
	fl.StringVar(&f.GID, "ib-gid", "", "GID of the port to use, on Ethernet (RoCE); default RoCE v2 and no link-local address if there is one")
	fl.IntVar(&f.Blocks, "ib-blocks", 0, "blocks of registered memory for each direction (0: 1000, or what the messages of --ib-mode need)")
	fl.StringVar(&f.Completion, "ib-completion", completions[0], "how InfiniBand is waited for: spin (then block), channel (block) or poll (keeps a processor busy)")
}

// Run are the flags of a whole run: both ends of a pair must have them alike.
type Run struct {
	Network    string
	Mode       string
	BlockBytes int
}

// Add declares them.
func (r *Run) Add(fl *pflag.FlagSet, links []string) {
	fl.StringVar(&r.Network, "network", Auto, "network between peers: auto (the best one that both ends have), "+catalog.Words(links))
	fl.StringVar(&r.Mode, "ib-mode", Segments, "how InfiniBand carries messages: segments (one to a block), messages (one work request each) or one-sided (asynchronous ones written in place)")
	fl.IntVar(&r.BlockBytes, "ib-block-bytes", defaultBlockBytes, "bytes of a block, with --ib-mode segments")
}

// Check refuses invalid values. links are the names of the program's links.
func (r *Run) Check(links []string) error {
	if err := checkNetwork(r.Network, links); err != nil {
		return err
	}
	switch {
	case !slices.Contains(Modes(), r.Mode):
		return fmt.Errorf("--ib-mode %q%s: want segments, messages or one-sided", r.Mode, spelling.Suggest(r.Mode, Modes()))
	case r.BlockBytes < 1024 || r.BlockBytes > 1<<20:
		return fmt.Errorf("--ib-block-bytes %d: want 1024 to %d", r.BlockBytes, 1<<20)
	}
	return nil
}

func checkNetwork(network string, links []string) error {
	if all := append([]string{Auto}, links...); !slices.Contains(all, network) {
		return catalog.Unknown("network", network, all)
	}
	return nil
}

// Check refuses invalid values. links are the names of the program's links.
func (f *Flags) Check(links []string) error {
	if f.Network != "" {
		if err := checkNetwork(f.Network, links); err != nil {
			return err
		}
	}
	switch {
	case f.Port < 0 || f.Port > 255:
		return fmt.Errorf("--ib-port %d: ports count from 1; 0 is the fastest active one", f.Port)
	case f.Blocks < 0 || f.Blocks > 1<<20:
		return fmt.Errorf("--ib-blocks %d: want 1 to %d, or 0 for a good choice", f.Blocks, 1<<20)
	case f.Completion != "" && !slices.Contains(completions, f.Completion):
		return fmt.Errorf("--ib-completion %q%s: want spin, channel or poll", f.Completion, spelling.Suggest(f.Completion, completions))
	}
	return nil
}

// Args are the flags of a peer's process that has these.
func (f *Flags) Args() []string {
	var out []string
	add := func(name, value string) {
		if value != "" && value != "0" {
			out = append(out, "--"+name, value)
		}
	}
	add("network", f.Network)
	add("ib-device", f.Device)
	add("ib-port", strconv.Itoa(f.Port))
	add("ib-gid", f.GID)
	add("ib-blocks", strconv.Itoa(f.Blocks))
	add("ib-completion", f.Completion)
	return out
}

// SoftwareRanks reads --ib-device software and software:R,R,…: which ranks have a
// software adapter. false: it names another device.
func SoftwareRanks(device string, peers int) (has []bool, is bool, err error) {
	list, found := strings.CutPrefix(device, Software)
	if !found || list != "" && !strings.HasPrefix(list, ":") {
		return nil, false, nil
	}
	has = make([]bool, peers)
	if list == "" {
		for r := range has {
			has[r] = true
		}
		return has, true, nil
	}
	for part := range strings.SplitSeq(list[1:], ",") {
		r, err := strconv.Atoi(part)
		if err != nil || r < 0 || r >= peers {
			return nil, true, fmt.Errorf("--ib-device %s: want software, or software:R,R,… with ranks from 0 to %d", device, peers-1)
		}
		has[r] = true
	}
	return has, true, nil
}
