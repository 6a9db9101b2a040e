package p2psap

import (
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// Types of package path by which conditions and sessions are described.
type (
	// Locality is how near the two ends of a session are.
	Locality = path.Locality
	// Network is the kind of network between two peers.
	Network = path.Network
	// Distance is how far apart the two ends of an open session were measured to be.
	Distance = path.Distance
	// Placement is what one end declares about where it runs.
	Placement = path.Placement
	// Evidence is what two ends know about where they are.
	Evidence = path.Evidence
	// Finding is the locality of two ends and the reason for it.
	Finding = path.Finding
	// PathMetrics are what open sessions measured on the way to a peer.
	PathMetrics = path.Metrics
	// LinkContext is what the core needs of a microproto.Link: everything but the transfer
	// of frames.
	LinkContext = rail.Link
)

// Values of Locality, Network and Distance; see package path.
const (
	SameProcess  = path.SameProcess
	SameHost     = path.SameHost
	SameCluster  = path.SameCluster
	OtherCluster = path.OtherCluster

	Ethernet     = path.Ethernet
	InfiniBand   = path.InfiniBand
	SharedMemory = path.SharedMemory
	Memory       = path.Memory
	Stream       = path.Stream

	DistanceUnknown = path.DistanceUnknown
	Near            = path.Near
	Far             = path.Far

	NetworkRTT = path.NetworkRTT
	NearRTT    = path.NearRTT
)

// Locate returns the locality that the evidence shows; see path.Locate.
func Locate(e Evidence) Finding { return path.Locate(e) }
