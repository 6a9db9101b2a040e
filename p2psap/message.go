package p2psap

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

func (h *hello) append(w *writer) {
	w.text(h.Run, maxNameBytes)
	w.text(h.Version, maxNameBytes)
	w.u64(h.Catalog)
	w.text(h.Name, maxNameBytes)
	w.u64(h.Incarnation)
	w.text(h.Host, maxNameBytes)
	w.u64(h.Process)
	w.text(h.Cluster, maxNameBytes)
	w.u8(uint8(len(h.Addresses)))
	for _, p := range h.Addresses {
		w.prefix(p)
	}
	w.u8(uint8(h.Network))
	w.bytes(h.Offer, maxOfferBytes)
	w.u8(uint8(len(h.Rails)))
	for _, r := range h.Rails {
		w.u8(uint8(r))
	}
}

func parseHello(r *reader) (hello, error) {
	h := hello{Run: r.text(maxNameBytes), Version: r.text(maxNameBytes), Catalog: r.u64()}
	h.Name, h.Incarnation = r.text(maxNameBytes), r.u64()
	h.Host, h.Process, h.Cluster = r.text(maxNameBytes), r.u64(), r.text(maxNameBytes)
	count := int(r.u8())
	if count > maxAddresses {
		r.bad = true
	}
	for i := 0; i < count && !r.bad; i++ {
		h.Addresses = append(h.Addresses, r.prefix())
	}
	h.Network, h.Offer = Network(r.u8()), r.bytes(maxOfferBytes)
	if count = int(r.u8()); count > maxRails {
		r.bad = true
	}
	for i := 0; i < count && !r.bad; i++ {
		h.Rails = append(h.Rails, Network(r.u8()))
	}
	if err := r.end(kindHello); err != nil {
		return hello{}, err
	}
	if h.Name == "" || !h.Network.valid() {
		return hello{}, fmt.Errorf("%w: hello from peer %q over network %d", ErrMalformed, h.Name, h.Network)
	}
	for i, k := range h.Rails {
		if !k.valid() || k == h.Network || slices.Contains(h.Rails[:i], k) {
			return hello{}, fmt.Errorf("%w: hello from peer %q with the rails %d", ErrMalformed, h.Name, h.Rails)
		}
	}
	return h, nil
}

func (o *open) append(w *writer) {
	w.u32(uint32(o.Session))
	w.text(o.Name, maxNameBytes)
	w.u8(uint8(o.Mode))
	w.u8(uint8(len(o.Protocols)))
	for _, p := range o.Protocols {
		w.text(p, maxNameBytes)
	}
	w.u64(o.Fingerprint)
	w.u16(o.Port)
	w.u32(o.FrameBytes)
	w.u8(uint8(o.Network))
	w.u32(o.Round)
	w.u32(o.BaseBytes)
	w.u64(o.ReceiveBytes)
	w.u16(uint16(len(o.Slots)))
	for _, s := range o.Slots {
		w.u32(uint32(s.Tag))
		w.u32(uint32(s.Length))
	}
	o.appendProtection(w)
}

func parseOpen(r *reader) (open, error) {
	o := open{Session: SessionID(r.u32()), Name: r.text(maxNameBytes), Mode: microproto.Mode(r.u8())}
	n := int(r.u8())
	if n > maxProtocols {
		r.bad = true
	}
	for i := 0; i < n && !r.bad; i++ {
		o.Protocols = append(o.Protocols, r.text(maxNameBytes))
	}
	o.Fingerprint, o.Port, o.FrameBytes = r.u64(), r.u16(), r.u32()
	o.Network, o.Round, o.BaseBytes, o.ReceiveBytes = Network(r.u8()), r.u32(), r.u32(), r.u64()
	n = int(r.u16())
	if n > maxSlots {
		r.bad = true
	}
	for i := 0; i < n && !r.bad; i++ {
		s := SlotSpec{Tag: Tag(r.u32())}
		length := r.u32()
		if length > maxSlotBytes {
			r.bad = true
		}
		s.Length = int(length)
		o.Slots = append(o.Slots, s)
	}
	o.parseProtection(r)
	if err := r.end(kindOpen); err != nil {
		return open{}, err
	}
	if o.Session == 0 || (o.Mode != microproto.ModeSynchronous && o.Mode != microproto.ModeAsynchronous) ||
		o.FrameBytes > 1<<30 || o.BaseBytes > 1<<30 || o.ReceiveBytes > maxReceiveBytes || !o.Network.valid() {
		return open{}, fmt.Errorf("%w: open of session %q with a field out of bounds", ErrMalformed, o.Name)
	}
	return o, nil
}

func (a *openAck) append(w *writer) {
	w.u32(uint32(a.To))
	w.u32(uint32(a.From))
	w.u32(a.FrameBytes)
	w.u8(uint8(a.Network))
	w.u64(a.Fingerprint)
}

func parseOpenAck(r *reader) (openAck, error) {
	a := openAck{SessionID(r.u32()), SessionID(r.u32()), r.u32(), Network(r.u8()), r.u64()}
	return a, r.end(kindOpenAck)
}

func (j *reject) append(w *writer) {
	w.u32(uint32(j.To))
	w.u32(uint32(j.From))
	w.text(j.Reason, maxReasonBytes)
}

func parseReject(r *reader) (reject, error) {
	j := reject{SessionID(r.u32()), SessionID(r.u32()), r.text(maxReasonBytes)}
	return j, r.end(kindReject)
}

func (c *closing) append(w *writer) {
	w.u32(uint32(c.To))
	w.u32(uint32(c.From))
	w.u64(c.Accepted)
}

func parseClosing(r *reader, k controlKind) (closing, error) {
	c := closing{SessionID(r.u32()), SessionID(r.u32()), r.u64()}
	if err := r.end(k); err != nil {
		return closing{}, err
	}
	if c.From == 0 {
		return closing{}, fmt.Errorf("%w: %v of session 0", ErrMalformed, k)
	}
	return c, nil
}

func (a *adapt) append(w *writer) {
	w.u32(uint32(a.To))
	w.u32(uint32(a.From))
	w.u8(a.Epoch)
	w.u8(uint8(a.Cause))
	w.u8(uint8(a.Mode))
	w.u8(uint8(a.Network))
	w.u32(a.Round)
	w.u8(uint8(a.Distance))
	lossy := uint8(0)
	if a.Lossy {
		lossy = 1
	}
	w.u8(lossy)
	w.text(a.Reason, maxReasonBytes)
	w.u8(uint8(len(a.Protocols)))
	for _, p := range a.Protocols {
		w.text(p, maxNameBytes)
	}
	w.u64(a.Fingerprint)
	w.u32(a.FrameBytes)
	w.u64(a.Sent)
}

func parseAdapt(r *reader) (adapt, error) {
	a := adapt{
		To: SessionID(r.u32()), From: SessionID(r.u32()), Epoch: r.u8(), Cause: cause(r.u8()), Mode: microproto.Mode(r.u8()),
		Network: Network(r.u8()), Round: r.u32(), Distance: Distance(r.u8()),
	}
	lossy := r.u8()
	a.Lossy, a.Reason = lossy == 1, r.text(maxReasonBytes)
	n := int(r.u8())
	if n > maxProtocols {
		r.bad = true
	}
	for i := 0; i < n && !r.bad; i++ {
		a.Protocols = append(a.Protocols, r.text(maxNameBytes))
	}
	a.Fingerprint, a.FrameBytes, a.Sent = r.u64(), r.u32(), r.u64()
	if err := r.end(kindAdapt); err != nil {
		return adapt{}, err
	}
	if a.To == 0 || a.From == 0 || a.Cause < causeScheme || a.Cause > causeRail || !a.Network.valid() || a.Distance > Far || lossy > 1 ||
		a.Mode != microproto.ModeSynchronous && a.Mode != microproto.ModeAsynchronous || a.FrameBytes > 1<<30 {
		return adapt{}, fmt.Errorf("%w: adapt with a field out of bounds", ErrMalformed)
	}
	return a, nil
}

func (a *adapted) append(w *writer) {
	w.u32(uint32(a.To))
	w.u32(uint32(a.From))
	w.u8(a.Epoch)
	w.u64(a.Sent)
	w.u64(a.Accepted)
	w.u64(a.Stored)
	w.u64(a.Credit)
}

func parseAdapted(r *reader) (adapted, error) {
	a := adapted{SessionID(r.u32()), SessionID(r.u32()), r.u8(), r.u64(), r.u64(), r.u64(), r.u64()}
	return a, r.end(kindAdapted)
}

func (d *drained) append(w *writer) {
	w.u32(uint32(d.To))
	w.u32(uint32(d.From))
	w.u8(d.Epoch)
}

func parseDrained(r *reader) (drained, error) {
	d := drained{SessionID(r.u32()), SessionID(r.u32()), r.u8()}
	return d, r.end(kindDrained)
}

func (s *standing) append(w *writer) {
	w.u8(uint8(s.Network))
	w.u32(s.Round)
	w.u8(uint8(s.State))
	w.bytes(s.Offer, maxOfferBytes)
	w.text(s.Reason, maxReasonBytes)
}

func parseStanding(r *reader) (standing, error) {
	s := standing{Network(r.u8()), r.u32(), railState(r.u8()), r.bytes(maxOfferBytes), r.text(maxReasonBytes)}
	if err := r.end(kindRail); err != nil {
		return standing{}, err
	}
	if !s.Network.valid() || s.Round == 0 || s.State < railOffered || s.State > railDown || s.State != railOffered && len(s.Offer) > 0 {
		return standing{}, fmt.Errorf("%w: rail with a field out of bounds", ErrMalformed)
	}
	return s, nil
}

// catalogFingerprint is a hash of the names that a catalog lists.
func catalogFingerprint(c *microproto.Catalog) uint64 {
	h := fnv.New64a()
	for _, name := range c.Names() {
		_, _ = h.Write([]byte(name))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
