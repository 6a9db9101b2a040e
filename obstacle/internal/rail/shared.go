package rail

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/shm"
)

// OpenShared opens the rail Memory or Shared of a peer. network is the result of Effective, cluster the label of the
// peer. If the rail is neither available nor required, OpenShared returns nil and the reason. With Auto, peers of one
// process use Memory and all others Shared, but not between peers with labels of different clusters: those have the
// columns of Table I between clusters, and its congestion control.
func (h *Host) OpenShared(rail, name, cluster, network string, run rendezvous.Rails, log func(line string)) (
	link microproto.Link, why string, err error,
) {
	required := network == rail
	switch {
	case !required && network != Auto:
		return nil, "--network " + network, nil
	case !required && run.Neighbours == 0:
		return nil, "this peer has no neighbours", nil
	case !required && (h.Fabric != nil || h.Without != ""):
		return nil, "--ib-device " + Software, nil
	case !required && rail == Shared && h.Memory != nil && !h.Others:
		return nil, "the peers share the memory of one process", nil
	case rail == Memory && h.Memory == nil:
		err = errOneProcess
	default:
		c := h.shared(name, run)
		if !required {
			c.Group = cluster
		}
		if c.Log = log; rail == Shared {
			c.Memory = nil
		}
		var l *shm.Link
		if l, err = shm.Open(c); err == nil {
			return l, "", nil
		}
	}
	if required {
		return nil, "", fmt.Errorf("--network %s: %w", network, err)
	}
	return nil, err.Error(), nil
}

var errOneProcess = errors.New("this process runs one peer (solve --in-process runs all peers in one; " +
	"--network shm connects the processes of a host)")

// SharedHere returns nil unless network is Memory or Shared and this process, which runs all peers if inProcess is set,
// cannot use it.
func SharedHere(network string, inProcess bool) error {
	switch {
	case network == Memory && !inProcess:
		return errOneProcess
	case network == Shared:
		return shm.Usable()
	}
	return nil
}

// shared returns the settings of a link. A value has to fit into one frame, so that it is replaced as a whole. A
// synchronous message that fits into one is packed and read where it lies; longer ones are copied, in short frames, of
// which one is written while the one before is read.
func (h *Host) shared(name string, run rendezvous.Rails) shm.Config {
	one := max(run.MessageBytes+frameRoom, shm.DefaultFrameBytes)
	c := shm.Config{Name: name, Memory: h.Memory, Values: -1}
	if one <= longestInPlace {
		c.FrameBytes = one
	}
	if run.Values > 0 {
		c.Values = run.Values + spareValues
		c.ValueBytes = one
	}
	return c
}

// longestInPlace bounds the frames of synchronous sessions: each connection has at least eight blocks of that size.
const longestInPlace = 1 << 20

// frameRoom is room for the headers of a frame, and for its protection.
const frameRoom = microproto.MaxHeaderBytes + 128

// OutboxBytes returns the shared memory that a peer has for each of its neighbours on its host.
func (h *Host) OutboxBytes(run rendezvous.Rails) (int64, error) {
	return h.shared("", run).OutboxBytes()
}
