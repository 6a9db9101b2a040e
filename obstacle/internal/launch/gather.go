package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// gather opens the rendezvous and starts the peers that the launcher starts. They join for the first epoch, which begins
// when all are ready.
func (r *shell) gather() error {
	address := cmp.Or(r.Address, "127.0.0.1:0")
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen at %s: %w (--rendezvous needs an address and a free port of this host)",
			address, err)
	}
	r.server = rendezvous.Serve(l, r.Identity, len(r.members), r.PeerTimeout, func(text string) { r.Log.Warn().Msg(text) }, r.admit)
	r.listens = r.server.Addr()
	r.beginJoining()
	if r.Spawn != nil {
		if err := r.spawn(); err != nil {
			return err
		}
	} else if r.Listening != nil {
		if err := r.Listening(l.Addr().String()); err != nil {
			return err
		}
	} else if r.Notes != nil {
		at := strings.Join(host.Addresses(l.Addr().String(), "localhost"), ",")
		fmt.Fprintf(r.Notes, "waiting for %d peers at %s: obstacle peer --rendezvous %s --secret-file FILE\n",
			len(r.members)/max(1, r.Parts), at, spelling.Word(at))
	}
	return nil
}

func (r *shell) spawn() error {
	for _, m := range r.members {
		if m.reserved {
			continue
		}
		var err error
		if m.child, m.name, err = r.startPeer(m, m.rank); err != nil {
			return fmt.Errorf("cannot start peer %d: %w", m.rank, err)
		}
		m.awaited = true
	}
	for i := range r.Spares {
		var err error
		s := &member{rank: len(r.members) + i}
		if s.child, s.name, err = r.startPeer(s, s.rank); err != nil {
			return fmt.Errorf("cannot start spare peer %d: %w", i, err)
		}
		r.starting = append(r.starting, s)
	}
	return nil
}

// admit passes on a connection that has completed the handshake.
func (r *shell) admit(conn *rendezvous.Conn, j rendezvous.Join) {
	defer exitOnPanic()
	switch j.Purpose {
	case rendezvous.ToVote:
		r.keeper.Load().Serve(conn)
		return
	case rendezvous.ToAttach:
		r.attend(conn)
		return
	}
	if !r.emit(input{arrived: conn, join: j}) {
		r.turnAway(conn)
	} else if isClosed(r.done) {
		r.turnAwayAll()
	}
}

// serve receives the messages of a peer, places its block and emits the rest as events.
func (r *shell) serve(m *member, l *link) {
	defer close(l.served)
	defer exitOnPanic()
	var at, stepAt int64
	var captured []float64
	screen := kernel.Screen{Most: r.largest} // of all values
	for {
		msg, err := l.Receive(
			rendezvous.KindListen, rendezvous.KindReady, rendezvous.KindBeat, rendezvous.KindChunk,
			rendezvous.KindResult, rendezvous.KindSessions, rendezvous.KindStep, rendezvous.KindBlock,
			rendezvous.KindCaptured, rendezvous.KindRepaired, rendezvous.KindUnreachable, rendezvous.KindKeeping,
			rendezvous.KindLeave,
		)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("end of stream")
			}
			r.emit(input{event: event{of: m, closed: err}})
			return
		}
		switch msg := msg.(type) {
		case rendezvous.Listen:
			at = 0 // of a newer epoch
			if stepAt = 0; r.series != nil && !l.displaced.Load() {
				r.series.resume(m.rank, msg.Epoch)
			}
			r.emit(input{event: event{of: m, message: msg}})
		case rendezvous.Captured:
			r.emit(input{event: event{of: m, message: msg, values: captured}})
			captured = nil
		case rendezvous.Block:
			err = errors.New("part of the block has already arrived")
			switch {
			case msg.Stream == rendezvous.StreamSolution && at == 0:
				if err = r.owned.declare(m.rank, msg.Box); err == nil {
					r.emit(input{event: event{of: m, message: msg}})
				}
			case msg.Stream == rendezvous.StreamStep && l.displaced.Load():
				err = nil
			case msg.Stream == rendezvous.StreamStep && stepAt == 0 && r.series != nil:
				l.blocked.Store(true)
				err = r.series.declare(m.rank, msg.Box)
				l.blocked.Store(false)
			}
			if err != nil {
				err = fmt.Errorf("invalid box: %w", err)
			}
		case rendezvous.Step:
			if l.displaced.Load() {
				stepAt = 0
				continue
			}
			if err = errSeries; r.series != nil {
				err = r.series.complete(m.rank, msg, stepAt)
			}
			if stepAt = 0; err == nil {
				r.emit(input{event: event{of: m, message: msg}})
			}
		case rendezvous.Chunk:
			size := int64(len(msg.Data))
			err = errors.New("out of order")
			if msg.Stream == rendezvous.StreamSolution && msg.Offset == 0 {
				at = 0 // of a newer epoch
			}
			switch wrong := screen.Check(msg.Data); {
			case wrong != nil:
				err = fmt.Errorf("%w: %w", rendezvous.ErrMalformed, wrong)
			case msg.Stream == rendezvous.StreamCapture && msg.Offset == 8*int64(len(captured)) && size%8 == 0 &&
				msg.Offset+size <= 8*int64(r.Problem.Points()):
				if size == rendezvous.MaxChunk && captured == nil { // probably the whole block
					captured = make([]float64, 0, r.owned.box(m.rank).Points())
				}
				captured, err = blocks.Append(captured, msg.Data), nil
				r.emit(input{event: event{of: m}}) // it is not silent
			case msg.Stream == rendezvous.StreamStep && l.displaced.Load():
				err = nil
			case msg.Stream == rendezvous.StreamStep && msg.Offset == stepAt && r.series != nil:
				l.blocked.Store(true)
				err = r.series.put(m.rank, msg.Offset, msg.Data)
				l.blocked.Store(false)
				stepAt += size
			case msg.Stream == rendezvous.StreamSolution && msg.Offset == at:
				err = blocks.Put(r.vector(), r.Problem.N, r.owned.box(m.rank), msg.Offset, msg.Data)
				if at += size; err == nil {
					r.emit(input{event: event{of: m, bytes: size}})
				}
			}
			if err != nil {
				err = fmt.Errorf("invalid part of its block: %w", err)
			}
		case rendezvous.Result:
			if msg.Placed && r.Answer != nil {
				if wrong := screen.CheckLargest(blocks.MaxAbs(r.vector(), r.Problem.N, r.owned.box(m.rank))); wrong != nil {
					err = fmt.Errorf("%w: %w", rendezvous.ErrMalformed, wrong)
					break
				}
			}
			r.emit(input{event: event{of: m, message: msg}})
		default:
			r.emit(input{event: event{of: m, message: msg}})
		}
		if err != nil {
			l.Close()
			r.emit(input{event: event{of: m, closed: err}})
			return
		}
	}
}
