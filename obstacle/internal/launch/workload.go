package launch

import (
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// workload is an assignment with what follows it in chunks.
type workload struct {
	assign  rendezvous.Assign
	problem []byte    // nil: the peer has it
	n       [3]int    // points of the grid per axis
	initial []float64 // of the whole grid; nil: none
	block   []float64 // of the peer's box, instead of initial
	around  []float64 // of assign.Repair
}

// send writes the workload to a peer.
func (w *workload) send(m *member) error {
	if err := m.conn.Send(w.assign); err != nil {
		return err
	}
	if err := sendBytes(m.conn, rendezvous.StreamProblem, w.problem); err != nil {
		return err
	}
	if w.initial != nil {
		err := sendValues(m.conn, rendezvous.StreamInitial, blocks.Bytes(m.box), func(piece []byte, at int64) error {
			return blocks.Get(piece, w.initial, w.n, m.box, at)
		})
		if err != nil {
			return err
		}
	}
	if err := sendArray(m.conn, rendezvous.StreamInitial, w.block); err != nil {
		return err
	}
	return sendArray(m.conn, rendezvous.StreamAround, w.around)
}

// sendArray sends values in chunks.
func sendArray(conn *rendezvous.Conn, s rendezvous.Stream, values []float64) error {
	return sendValues(conn, s, 8*int64(len(values)), func(piece []byte, at int64) error {
		blocks.Encode(piece, values[at/8:][:len(piece)/8])
		return nil
	})
}

// sendBytes sends the bytes of a stream in chunks.
func sendBytes(conn *rendezvous.Conn, s rendezvous.Stream, data []byte) error {
	for at := 0; at < len(data); at += rendezvous.MaxChunk {
		piece := data[at:min(at+rendezvous.MaxChunk, len(data))]
		if err := conn.Send(rendezvous.Chunk{Stream: s, Offset: int64(at), Data: piece}); err != nil {
			return err
		}
	}
	return nil
}

// sendValues sends the bytes of a stream in chunks, which get fills.
func sendValues(
	conn *rendezvous.Conn, s rendezvous.Stream, bytes int64, get func(piece []byte, at int64) error,
) error {
	buf := make([]byte, min(rendezvous.MaxChunk, bytes))
	for at := int64(0); at < bytes; {
		piece := buf[:min(int64(len(buf)), bytes-at)]
		if err := get(piece, at); err != nil {
			return err
		}
		if err := conn.Send(rendezvous.Chunk{Stream: s, Offset: at, Data: piece}); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}
