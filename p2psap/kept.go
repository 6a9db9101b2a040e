package p2psap

// kept are the synchronous transfers that are not known to be accepted, oldest first:
// those that a new composition may have to send again, and behind them those that were
// started while the composition changes. It keeps its memory.
type kept struct {
	ring      []keptTransfer // a power of two long
	first     int
	n         int
	base      uint64 // number of the transfer before the first
	submitted int    // of these, how many the present endpoint has
}

// keptTransfer is what Send was given; data is the caller's.
type keptTransfer struct {
	tag   uint32
	label uint64
	data  []byte
}

func (k *kept) at(i int) *keptTransfer { return &k.ring[(k.first+i)&(len(k.ring)-1)] }

func (k *kept) push(t keptTransfer) {
	if k.n == len(k.ring) {
		bigger := make([]keptTransfer, max(2, 2*len(k.ring)))
		for i := range k.n {
			bigger[i] = *k.at(i)
		}
		k.ring, k.first = bigger, 0
	}
	k.n++
	*k.at(k.n - 1) = t
}

// forget drops the transfers up to and including number to.
func (k *kept) forget(to uint64) {
	for k.n > 0 && k.base < to {
		*k.at(0) = keptTransfer{}
		k.first = (k.first + 1) & (len(k.ring) - 1)
		if k.n--; k.n == 0 {
			k.first = 0 // so that few transfers touch the same memory again and again
		}
		k.base++
		k.submitted = max(k.submitted-1, 0)
	}
}

// bytes is what the transfers take of the other end's queue.
func (k *kept) bytes() (sum uint64) {
	for i := range k.n {
		sum += queueCost(len(k.at(i).data))
	}
	return sum
}

// queueCost is a message's share of the receiver's queue.
func queueCost(length int) uint64 { return uint64(length) + messageCost }
