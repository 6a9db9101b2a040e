package launch

import (
	"encoding/json"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// send writes the workload to a peer.
func (w *workload) send(l *link) error {
	conn := l.Conn
	if err := conn.Send(w.assign); err != nil {
		return err
	}
	if err := sendBytes(conn, rendezvous.StreamProblem, w.problem); err != nil {
		return err
	}
	if w.initial != nil {
		err := sendValues(conn, rendezvous.StreamInitial, blocks.Bytes(w.box), func(piece []byte, at int64) error {
			return blocks.Get(piece, w.initial, w.n, w.box, at)
		})
		if err != nil {
			return err
		}
	}
	if err := sendArray(conn, rendezvous.StreamInitial, w.block); err != nil {
		return err
	}
	return sendArray(conn, rendezvous.StreamAround, w.around)
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

// copies are those of the blocks of some peers, at the end of the step that is the newest when they are sent.
type copies struct {
	series *series
	ranks  []int
}

// send writes the copies to a keeper.
func (c copies) send(l *link) error {
	l.passing.Store(false) // a step that ends from now on needs other copies
	for _, e := range c.series.ends(c.ranks) {
		if err := l.Send(rendezvous.Held{Rank: e.Rank, Step: e.Step, Box: e.Box}); err != nil {
			return err
		}
		if err := sendArray(l.Conn, rendezvous.StreamStep, e.U); err != nil {
			return err
		}
	}
	return nil
}

// send writes the record to a keeper.
func (r *record) send(l *link) error {
	m := r.Record
	var err error
	if m.Losses, err = json.Marshal(r.losses); err != nil {
		return nil // the keeper has the record before
	}
	return l.Send(m)
}
