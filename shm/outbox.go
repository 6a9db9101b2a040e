package shm

import (
	"errors"
	"os"
)

// errGone reports that the other end has closed the connection, or that its process has ended.
var errGone = errors.New("the other end has gone")

// outbox is memory that one end writes and the other reads.
type outbox struct {
	bytes []byte
	file  *os.File           // of this end's, until the other end has it
	unmap func([]byte) error // nil: heap memory, or none
}

func (o *outbox) free() {
	if o.file != nil {
		_ = o.file.Close()
	}
	if o.unmap != nil {
		_ = o.unmap(o.bytes)
	}
}

// newOutbox returns zeroed memory for what this end writes.
func (l *Link) newOutbox() (o outbox, err error) {
	if l.config.Memory == nil {
		o, err = newSharedOutbox(l.layout.total)
	} else {
		o.bytes = alignedBytes(l.layout.total)
	}
	if err == nil {
		word(o.bytes, magicAt).Store(layoutMagic)
	}
	return o, err
}
