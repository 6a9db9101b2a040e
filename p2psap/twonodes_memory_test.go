package p2psap

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// spoil overwrites buffers that belong to the user again, so that a later read of them is detected.
func spoil(data []byte) {
	for i := range data {
		data[i] = 0xee
	}
}

func (e *socketUser) spoilAccepted() {
	accepted := e.n.Accepted(e.id)
	for len(e.flight) > 0 && e.flight[0].transfer <= accepted {
		spoil(e.flight[0].data)
		e.flight = e.flight[1:]
	}
}

// offer posts memory for the next message of a tag.
func (e *socketUser) offer() {
	if e.posted == nil && e.n.Mode(e.id) == microproto.ModeSynchronous {
		tag := 1 + e.d.rand.IntN(testSlots)
		e.posted = &Slot{Tag: Tag(tag), Data: make([]byte, slotLength(tag))}
		e.n.Post(e.id, e.posted)
	}
}

// withdraw takes the posted memory back and checks that memory withdrawn before was not written.
func (e *socketUser) withdraw() {
	if e.posted == nil {
		return
	}
	e.n.Withdraw(e.id)
	spoil(e.posted.Data)
	e.graves = append(e.graves, e.posted.Data)
	e.posted = nil
	if len(e.graves) > 8 {
		for _, b := range e.graves[0] {
			if b != 0xee {
				e.d.fail(fmt.Errorf("%s: memory was written to after it had been taken back", e.n.Name()))
			}
		}
		e.graves = e.graves[1:]
	}
}
