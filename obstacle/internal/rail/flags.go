// Package rail holds the settings of the networks between peers and opens the rails that a peer has in addition to
// Ethernet: shared memory with peers of its host, memory with those of its process, and InfiniBand.
package rail

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Values of --network.
const (
	Auto   = "auto"   // the best network that both ends of a pair have
	Ether  = "ether"  // Ethernet
	Memory = "memory" // memory of one process only
	Shared = "shm"    // shared memory of one host only
	IB     = "ib"     // InfiniBand only
	Stream = "stream" // kernel TCP, for synchronous sessions
)

// Values of --ib-mode.
const (
	Segments = "segments"  // blocks of --ib-block-bytes, each with one segment
	Messages = "messages"  // one work request per message
	OneSided = "one-sided" // the same, with asynchronous values written in place
)

// Modes returns the values of --ib-mode.
func Modes() []string { return []string{Segments, Messages, OneSided} }

// completions are the values of --ib-completion, the default first.
var completions = []string{"spin", "channel", "poll"}

// defaultBlockBytes is the block size of the published system.
const defaultBlockBytes = 8128

// Software is the value of --ib-device for the software adapter.
const Software = "software"

// Flags are the flags of one host. solve passes them to the peers that it starts.
type Flags struct {
	Network    string // "": as the run requires
	Device     string // "": the fastest
	Port       int
	GID        string
	Blocks     int // for each direction; 0: as the mode needs
	Completion string
}

// Add defines the flags.
func (f *Flags) Add(fl *pflag.FlagSet) {
	fl.StringVar(&f.Device, "ib-device", "",
		"RDMA device such as mlx5_0 (default: that of the fastest active port; obstacle doctor lists them)")
	fl.IntVar(&f.Port, "ib-port", 0, "port of the RDMA device, from 1 (0: the fastest active one)")
	fl.StringVar(&f.GID, "ib-gid", "",
		"GID of the port on Ethernet, RoCE (default: one of RoCE v2, not link-local if possible)")
	fl.IntVar(&f.Blocks, "ib-blocks", 0,
		"blocks of registered memory for each direction (0: 1000, or as the messages of --ib-mode need)")
	fl.StringVar(&f.Completion, "ib-completion", completions[0],
		"how to wait for InfiniBand: spin (then block), channel (block) or poll (keeps a processor busy)")
}

// Run holds the flags of the whole run, which are the same for all peers: Network, Mode and BlockBytes.
type Run rendezvous.Rails

// Add defines the flags. links are the names of the program's links.
func (r *Run) Add(fl *pflag.FlagSet, links []string) {
	fl.StringVar(&r.Network, "network", Auto,
		"network between peers: auto (the best one that both ends have), "+catalog.Words(links))
	fl.StringVar(&r.Mode, "ib-mode", Segments,
		"InfiniBand: segments (one per block), messages (one work request each) or one-sided (asynchronous values "+
			"written in place)")
	fl.IntVar(&r.BlockBytes, "ib-block-bytes", defaultBlockBytes, "with --ib-mode segments: size of a block")
}

// Check refuses invalid values. links are the names of the program's links.
func (r *Run) Check(links []string) error {
	if err := checkNetwork(r.Network, links); err != nil {
		return err
	}
	switch {
	case !slices.Contains(Modes(), r.Mode):
		return catalog.Unknown("ib-mode", r.Mode, Modes())
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
		return fmt.Errorf("--ib-port %d: want 1 to 255, or 0 for the fastest active port", f.Port)
	case f.Blocks < 0 || f.Blocks > 1<<20:
		return fmt.Errorf("--ib-blocks %d: want 1 to %d, or 0 to have it chosen", f.Blocks, 1<<20)
	case f.Completion != "" && !slices.Contains(completions, f.Completion):
		return catalog.Unknown("ib-completion", f.Completion, completions)
	}
	return nil
}

// Args returns the arguments of a peer process with these flags.
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

// SoftwareRanks parses --ib-device software and software:R,R,…. It returns, by rank, which peers have a software
// adapter, and false for the name of another device.
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
			return nil, true, fmt.Errorf("--ib-device %s: want software, or software:R,R,… with ranks from 0 to %d",
				device, peers-1)
		}
		has[r] = true
	}
	return has, true, nil
}
