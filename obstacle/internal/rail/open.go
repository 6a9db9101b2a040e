package rail

import (
	"cmp"
	"fmt"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/shm"
)

// Effective returns the value of --network that applies to a peer, from that of the run and its own.
func Effective(run, own string) (string, error) {
	switch {
	case own == "" || own == run || run == Auto:
		return cmp.Or(own, run), nil
	case own == Auto:
		return run, nil
	}
	return "", fmt.Errorf("different networks: the run has --network %s, this peer --network %s", run, own)
}

// Host holds the network settings of one peer.
type Host struct {
	Flags
	// Fabric connects the software adapters of this process. If it is nil, the adapters of the host are used.
	Fabric *ib.Fabric
	// Memory joins the peers of this process. If it is nil, the process runs one peer.
	Memory *shm.Memory
	// Others states that further peers of the run have processes of their own.
	Others bool
	// Without is the reason why this peer must not use InfiniBand, "" if it may.
	Without string
}

// Opened is an open InfiniBand rail. Its owner closes Link.
type Opened struct {
	Link   *ib.Link
	Device string // "mlx5_0 port 1"
	Why    string // why this device
}

// Open opens the InfiniBand rail of a peer. network is the result of Effective. If InfiniBand is neither available nor
// required, Open returns nil and the reason.
func (h *Host) Open(name, network string, run rendezvous.Rails, log func(line string)) (
	o *Opened, why string, err error,
) {
	switch {
	case network != Auto && network != IB:
		return nil, "--network " + network, nil
	case h.Without != "" && network == IB:
		return nil, "", fmt.Errorf("--network ib: %s", h.Without)
	case h.Without != "":
		return nil, h.Without, nil
	case run.Neighbours == 0:
		return nil, "this peer has no neighbours", nil
	case network == Auto && h.Fabric == nil && !ib.Present():
		return nil, ib.NoKernel, nil
	}
	o, err = h.open(name, run, log)
	if err == nil {
		return o, "", nil
	}
	if network == IB {
		return nil, "", fmt.Errorf("--network ib: %w", err)
	}
	return nil, err.Error(), nil
}

func (h *Host) open(name string, run rendezvous.Rails, log func(line string)) (*Opened, error) {
	c := h.Config(name, run)
	c.Log = log
	o := &Opened{Device: SoftwareAdapter, Why: "--ib-device " + Software}
	if h.Fabric != nil {
		c.Device = name
		if err := h.Fabric.Add(name); err != nil {
			return nil, err
		}
	} else {
		choice, err := h.choose(c, 1)
		if err != nil {
			return nil, err
		}
		c.Device, c.Port = choice.Port.Device, choice.Port.Number
		if choice.GID.Address.IsValid() {
			c.GID = 1 + choice.GID.Index
		}
		o.Device, o.Why = fmt.Sprintf("%s port %d", c.Device, c.Port), choice.Why
	}
	var err error
	o.Link, err = ib.Open(c)
	return o, err
}

// SoftwareAdapter is the name of a software adapter in outputs.
const SoftwareAdapter = "software adapter"

// Available returns the device that links in one process of this host would use, or an error that names all that is
// missing. It opens nothing.
func (h *Host) Available(run rendezvous.Rails, links int) (ib.Choice, error) {
	return h.choose(h.Config("available", run), links)
}

func (h *Host) choose(c ib.Config, links int) (ib.Choice, error) {
	bytes, err := Registers(c)
	if err != nil {
		return ib.Choice{}, err
	}
	there := ib.Look()
	return there.Choose(ib.Want{Device: h.Device, Port: h.Port, GID: h.GID, Bytes: int64(links) * bytes})
}

// Registers returns the amount of memory that a link with these settings registers, including the windows of its peers.
func Registers(c ib.Config) (int64, error) {
	blocks, err := c.RegionBytes()
	if err != nil {
		return 0, err
	}
	window, err := c.WindowBytes()
	return blocks + int64(max(c.Peers, 1))*window, err
}

// spareValues is the number of slots of a window in addition to those of the halos, for values that wait while a
// session changes its composition.
const spareValues = 2

// Config returns the settings of a link.
func (h *Host) Config(name string, run rendezvous.Rails) ib.Config {
	c := ib.Config{
		Name: name, Device: h.Device, Port: h.Port, Fabric: h.Fabric,
		Peers: max(run.Neighbours, 1), SendBlocks: h.Blocks, ReceiveBlocks: h.Blocks,
	}
	for _, how := range []ib.Completion{ib.CompletionSpin, ib.CompletionChannel, ib.CompletionPolling} {
		if how.String() == h.Completion {
			c.Completion = how
		}
	}
	switch run.Mode {
	case Messages:
		c.MessageBytes = run.MessageBytes
	case OneSided:
		c.MessageBytes, c.WindowSlots = run.MessageBytes, run.Values+spareValues
	default:
		c.BlockBytes = run.BlockBytes
	}
	return c
}
