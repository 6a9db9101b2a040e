package peer

import (
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
)

// sessions returns the sessions of this peer as the launcher receives them.
func (e *endpoint) sessions() []rendezvous.Session {
	out := []rendezvous.Session{}
	for _, i := range e.node.Sessions() {
		s := describe(i)
		if i.Conditions.Network == p2psap.InfiniBand {
			s.Device = e.ib.Device
		}
		if i.Conditions.Network == p2psap.Stream {
			s.PathDown = e.left(i.Peer)
		}
		out = append(out, s)
	}
	return out
}

// severed returns a neighbour with which this peer exchanges nothing at present, nil if there is none.
func (e *endpoint) severed() *rendezvous.Severed {
	for _, i := range e.node.Sessions() {
		if rank := rankOf(i.Peer); i.PathDown != "" && rank >= 0 {
			return &rendezvous.Severed{Rank: rank, Why: i.PathDown[:min(len(i.PathDown), maxWhy)]}
		}
	}
	return nil
}

// maxWhy bounds the reason in a heartbeat, in bytes.
const maxWhy = 512

// left returns why the Ethernet path to a node, which its sessions have left, is down; "" if it is up.
func (e *endpoint) left(node string) string {
	for _, r := range e.node.Rails(node) {
		if r.Network == p2psap.Ethernet && !r.Up {
			return r.Reason
		}
	}
	return ""
}

func describe(i p2psap.SessionInfo) rendezvous.Session {
	c := rendezvous.Channel{
		Name: i.Name, Mode: i.Conditions.Mode.String(), Locality: i.Conditions.Locality.String(), Why: i.LocalityReason,
		Network: i.Conditions.Network.String(), NetworkWhy: i.NetworkReason, PathDown: i.PathDown, Moves: i.Moves,
		Composition: i.Composition, Protection: i.Protection,
		Epoch: int(i.Epoch), Changes: i.Changes, PauseSeconds: i.LastPause.Seconds(),
		Lossy: i.Conditions.Lossy, PathLoss: i.Path.Loss, SegmentBytes: i.SegmentSize,
		FrameBytes:   i.FrameBytes,
		MessagesSent: i.MessagesSent, MessagesReceived: i.MessagesReceived,
		BytesSent: i.BytesSent, BytesReceived: i.BytesReceived,
		SegmentsSent: i.SegmentsSent, SegmentsReceived: i.SegmentsReceived, Retransmitted: i.Retransmitted,
	}
	if column, err := p2psap.ColumnOf(i.Conditions); err == nil {
		c.Column = column.String()
	}
	if i.Conditions.Distance != p2psap.DistanceUnknown {
		c.Distance = i.Conditions.Distance.String()
	}
	return rendezvous.Session{
		Peer: rankOf(i.Peer), Channel: c, RTTSeconds: i.RTT.Seconds(), PathRTT: i.Path.RTT.Seconds(),
		Dropped: i.Dropped, Overwritten: i.Overwritten,
	}
}

// refused counts, by reason, what the node and its link refused because it did not come from a peer of the run.
func (e *endpoint) refused() map[string]uint64 {
	out := map[string]uint64{}
	stats := e.node.Stats()
	for _, r := range stats.Refusals() {
		out[r.Reason] = r.Count
	}
	l := e.link.Stats()
	for reason, count := range map[string]uint64{
		"datagram.address": l.Unknown, "datagram.truncated": l.Truncated, "datagram.memory": l.NoBuffer,
	} {
		if count > 0 {
			out[reason] = count
		}
	}
	return out
}

// rankOf returns the rank of the node with that name, −1 if it is not a peer of the run.
func rankOf(node string) int {
	name, _, _ := strings.Cut(strings.TrimPrefix(node, namePrefix), ".")
	rank, err := strconv.Atoi(name)
	if err != nil {
		return -1
	}
	return rank
}
