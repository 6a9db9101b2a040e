package cli

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/shm"
	"github.com/p2pdc/p2pdc/stream"
)

// adapters returns the network settings of each peer that solve starts. It returns an error if the required network
// is not available.
func (a *app) adapters(q *request, w *work, p *launch.Plan) ([]rail.Host, error) {
	out := make([]rail.Host, w.peers)
	for r := range out {
		out[r] = q.host
	}
	if q.inProcess {
		memory := shm.NewMemory()
		for r := range out {
			out[r].Memory = memory
		}
	}
	if err := rail.SharedHere(q.Rails.Network, q.inProcess); err != nil {
		return nil, usage("--network %s: %w", q.Rails.Network, err)
	}
	if q.Rails.Network == rail.Stream {
		if w.scheme.Between(0, 0).Asynchronous() {
			return nil, usage("--network %s carries synchronous sessions, and --scheme %s has none: leave the flag out",
				rail.Stream, q.Scheme)
		}
		if err := stream.Usable(); err != nil {
			return nil, usage("--network %s: %w", rail.Stream, err)
		}
	}
	has, software, err := rail.SoftwareRanks(q.host.Device, w.peers)
	switch {
	case err != nil:
		return nil, badInput(err)
	case !software && q.Rails.Network == rail.IB:
		links := 1
		if q.inProcess {
			links = w.peers
		}
		if _, err := q.host.Available(p.RailsOf(0), links); err != nil {
			return nil, usage("--network ib: %w", err)
		}
		return out, nil
	case !software:
		return out, nil
	case q.Rails.Network == rail.Memory || q.Rails.Network == rail.Shared:
		return nil, usage("--ib-device %s: --network %s uses no adapter", q.host.Device, q.Rails.Network)
	case !q.inProcess:
		return nil, usage("--ib-device %s: software adapters connect peers of one process only: give --in-process",
			q.host.Device)
	case q.Rails.Network == rail.Ether || q.Rails.Network == rail.Stream:
		return nil, usage("--ib-device %s: --network %s uses no adapter", q.host.Device, q.Rails.Network)
	}
	fabric := ib.NewSoftwareFabric()
	for r := range out {
		out[r].Device = ""
		if has[r] {
			out[r].Fabric = fabric
			continue
		}
		if q.Rails.Network == rail.IB {
			return nil, usage("--network ib: peer %d has no adapter, by --ib-device %s; --network auto uses "+
				"Ethernet in that case", r, q.host.Device)
		}
		out[r].Without = fmt.Sprintf("--ib-device %s does not list peer %d", q.host.Device, r)
	}
	return out, nil
}
