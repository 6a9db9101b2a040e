package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// views makes the messages that keep the status of an obstacle attach up to date.
type views struct {
	steps  int   // time steps of the problem
	sent   State // whose lists the other end has
	losses []byte
	moves  []byte
	ranks  []rendezvous.RankView
}

// next returns the messages after which the other end has a state.
func (v *views) next(s *State) []rendezvous.View {
	first := rendezvous.View{
		Phase: int(s.Phase), ElapsedMS: s.Progress.Elapsed.Milliseconds(), Step: s.Progress.Step, Sweep: s.Progress.Sweep,
		Residual: nullable.Number(s.Progress.Residual), Epoch: s.Epoch, Term: s.Term, Gone: s.Gone,
	}
	out := []rendezvous.View{first}
	if v.ranks == nil {
		spec := s.Spec
		out[0].Spec, out[0].Steps = &spec, v.steps
		v.ranks = make([]rendezvous.RankView, spec.Partition.Peers())
	}
	if len(s.Members) > 0 && !(reflect.DeepEqual(s.Members, v.sent.Members) && reflect.DeepEqual(s.Boxes, v.sent.Boxes)) {
		out[0].Members, out[0].Boxes = s.Members, s.Boxes
		v.sent.Members, v.sent.Boxes = s.Members, s.Boxes
	}
	out[0].Losses = changed(s.Losses, &v.losses)
	out[0].Moves = changed(s.Moves, &v.moves)
	for rank := range v.ranks {
		now := rendezvous.RankView{Rank: rank, Sweep: s.Sweeps[rank], Lost: s.Lost[rank], Severed: s.Severed[rank], Sessions: s.Sessions[rank], Former: s.Former[rank]}
		if a, known := s.Accounts[rank]; known {
			now.Account = &a.Account
		}
		if reflect.DeepEqual(now, v.ranks[rank]) {
			continue
		}
		v.ranks[rank] = now
		last := &out[len(out)-1]
		if len(last.Ranks) == rendezvous.MaxRanks {
			out = append(out, first)
			last = &out[len(out)-1]
		}
		last.Ranks = append(last.Ranks, now)
	}
	return out
}

// changed returns the JSON of the first elements of a list, nil if it was sent before. The lists cannot fail to encode.
func changed[T any](list []T, sent *[]byte) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	text, err := json.Marshal(list[:min(len(list), rendezvous.MaxListed)])
	if err != nil || string(text) == string(*sent) {
		return nil
	}
	*sent = text
	return text
}

// view updates the status with what the leader of a run has sent.
func (s *Status) view(v *rendezvous.View) (err error) {
	if v.Phase < 0 || v.Phase > int(Judging) || v.Step < 0 || v.Steps < 0 || v.ElapsedMS < 0 || v.Epoch < 0 {
		return fmt.Errorf("phase %d, step %d, %d ms", v.Phase, v.Step, v.ElapsedMS)
	}
	if v.Spec != nil {
		if err := CheckCut(v.Spec.N, v.Spec.Partition); err != nil {
			return err
		}
	}
	s.update(func(t *State) {
		if v.Spec != nil { // of the leader or, after its loss, of another one
			t.Spec = *v.Spec
		}
		err = t.view(v)
	})
	return err
}

func (s *State) view(v *rendezvous.View) error {
	if s.Spec.Partition.Cuts[0] == nil {
		return errors.New("the description of the run has not been sent")
	}
	peers := s.Spec.Partition.Peers()
	if n := len(v.Members); n != len(v.Boxes) || n != 0 && n != peers {
		return fmt.Errorf("%d members and %d boxes of %d peers", n, len(v.Boxes), peers)
	}
	for _, k := range v.Ranks {
		if k.Rank < 0 || k.Rank >= peers {
			return fmt.Errorf("rank %d of %d peers", k.Rank, peers)
		}
		s.Sweeps[k.Rank] = k.Sweep
		severed{k.Rank, k.Severed}.apply(s)
		s.Sessions[k.Rank], s.Former[k.Rank] = k.Sessions, k.Former
		if delete(s.Lost, k.Rank); k.Lost {
			s.Lost[k.Rank] = true
		}
		if k.Account != nil {
			s.Accounts[k.Rank] = Account{Account: *k.Account}
		}
	}
	if v.Members != nil {
		s.Members, s.Boxes = v.Members, v.Boxes
	}
	if v.Losses != nil {
		s.Losses = nil
		if err := rendezvous.Nested(v.Losses, &s.Losses); err != nil {
			return err
		}
	}
	if v.Moves != nil {
		s.Moves = nil
		if err := rendezvous.Nested(v.Moves, &s.Moves); err != nil {
			return err
		}
	}
	s.Phase, s.Epoch, s.Term, s.Gone = Phase(v.Phase), v.Epoch, v.Term, v.Gone
	s.Progress = Progress{
		Elapsed: time.Duration(v.ElapsedMS) * time.Millisecond, Step: v.Step, Sweep: v.Sweep, Residual: float64(v.Residual),
	}
	return nil
}
