package peer

import (
	"errors"
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/obstacle/internal/member"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// receiveFrom receives the messages of one connection until Bye or an error.
func (p *peer) receiveFrom(conn *rendezvous.Conn) {
	p.in = conn
	for {
		m, err := conn.Receive(rendezvous.KindAssign, rendezvous.KindStart, rendezvous.KindStop, rendezvous.KindLost,
			rendezvous.KindBye, rendezvous.KindEpoch, rendezvous.KindCapture, rendezvous.KindHost,
			rendezvous.KindProbe, rendezvous.KindKeep, rendezvous.KindTerm, rendezvous.KindRecord, rendezvous.KindResend,
			rendezvous.KindHeld)
		if errors.Is(err, rendezvous.ErrMalformed) {
			p.emitWork(&work{err: err})
		}
		if err != nil || !p.receive(conn, m) {
			p.emit(input{Event: member.Event{Closed: true}})
			return
		}
		if _, over := m.(rendezvous.Bye); over {
			return
		}
	}
}

// receive handles a message of the leader, or passes it on if decisions depend on it. It returns false if the connection
// has ended.
func (p *peer) receive(conn *rendezvous.Conn, m rendezvous.Message) bool {
	switch m := m.(type) {
	case rendezvous.Assign:
		p.waiting.end()
		w := p.receiveWork(m)
		if errors.Is(w.err, member.ErrLauncherLeft) {
			return false
		}
		p.emitWork(w)
	case rendezvous.Capture:
		switch {
		case m.Copy != nil:
			p.sendCopy(conn, m)
		case m.Sample != nil:
			p.sample(conn, m)
		default:
			p.capture(conn, m)
		}
	case rendezvous.Host:
		p.host(m.Rank)
	case rendezvous.Keep:
		address := p.keep(m)
		_ = conn.Send(rendezvous.Keeping{Address: address})
		p.emit(input{Event: member.Event{Keeps: address}})
	case rendezvous.Held:
		if p.hold(m) != nil {
			conn.Close()
			return false
		}
	case rendezvous.Record:
		p.keeping.take(&m)
		p.emit(input{Event: member.Event{Message: m}})
	case rendezvous.Probe:
	default:
		p.emit(input{Event: member.Event{Message: m}})
	}
	return true
}

// emitWork passes on what the leader has assigned.
func (p *peer) emitWork(w *work) {
	a := &member.Assigned{
		Epoch: w.assign.Epoch, Resumes: w.assign.Resume != nil, Repairs: w.assign.Repair != nil, Err: w.err,
	}
	if w.err == nil {
		a.Box, a.After, a.InTime = p.box(), w.config.After, w.config.Problem.Steps() > 0
	}
	p.emit(input{Event: member.Event{Assigned: a}, work: w})
}

// receiveStream receives the chunks of one stream, in order, until total bytes have arrived.
func (p *peer) receiveStream(s rendezvous.Stream, total int64, take func([]byte)) error {
	for at := int64(0); at < total; {
		m, err := p.in.Receive(rendezvous.KindChunk)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return member.ErrLauncherLeft
			}
			return err
		}
		c := m.(rendezvous.Chunk)
		if c.Stream != s || c.Offset != at || len(c.Data) == 0 || int64(len(c.Data)) > total-at ||
			len(c.Data)%8 != 0 && s != rendezvous.StreamProblem {
			return fmt.Errorf("unexpected chunk of stream %d at %d with %d bytes: stream %d is at %d of %d",
				c.Stream, c.Offset, len(c.Data), s, at, total)
		}
		take(c.Data)
		at += int64(len(c.Data))
	}
	return nil
}
