package path

// Locality is how near the two ends of a session are to each other.
type Locality uint8

// The localities, from nearest to farthest. The first three are "intra" in Table I.
const (
	SameProcess Locality = iota + 1
	SameHost
	SameCluster
	OtherCluster
)

// Intra reports whether the two ends are in one cluster.
func (l Locality) Intra() bool { return l != OtherCluster }

func (l Locality) String() string {
	names := [...]string{"", "same process", "same host", "same cluster", "other cluster"}
	if l > 0 && l <= OtherCluster {
		return names[l]
	}
	return "locality?"
}

// Network is the kind of network between two peers.
type Network uint8

// The kinds of network. SharedMemory, Memory and Stream, which is kernel TCP, take the InfiniBand columns of Table I.
const (
	Ethernet Network = iota + 1
	InfiniBand
	SharedMemory
	Memory
	Stream
)

func (n Network) String() string {
	if names := [...]string{"", "ether", "ib", "shm", "memory", "stream"}; n.Valid() {
		return names[n]
	}
	return "network?"
}

// Valid reports whether n is one of the kinds above.
func (n Network) Valid() bool { return n >= Ethernet && n <= Stream }

// Distance is how far apart the two ends of an open session were measured to be.
type Distance uint8

// The distances. With DistanceUnknown the locality holds.
const (
	DistanceUnknown Distance = iota
	Near
	Far
)

func (d Distance) String() string {
	return [...]string{"unknown", "near", "far"}[min(d, Far)]
}
