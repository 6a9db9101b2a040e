package launch

import (
	"io"
	"slices"

	"github.com/rs/zerolog"
)

// execute executes the effects of an event in their order.
func (r *run) execute() {
	for _, e := range r.take() {
		r.perform(e)
	}
}

func (r *run) perform(e effect) {
	switch e := e.(type) {
	case send:
		e.to.notify(e.msg)
	case passOn:
		if !e.to.passing.Swap(true) { // else those that wait will be of this step
			e.to.notify(copies{r.series, e.ranks})
		}
	case disconnect:
		e.of.conn.Close()
	case finish:
		r.forget(e.of)
	case retire:
		if e.of.child != nil {
			e.of.child.Kill()
		}
		if e.of.conn != nil {
			e.of.conn.Close()
		}
		r.forget(e.of)
	case logged:
		levels := [...]zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel}
		r.Log.WithLevel(levels[e.level]).Fields(e.fields).Msg(e.text)
	case note:
		if r.Notes != nil {
			_, _ = io.WriteString(r.Notes, e.text)
		}
	case updated:
		r.Status.update(e.apply)
	case progress:
		if r.Watch != nil {
			r.Watch(e.Progress)
		}
	case captured:
		r.Captures.Take(e.u, e.at)
	case sampled:
		r.Samples.Take(e.of, e.u, e.at)
	}
}

// forget accepts no more messages to a peer. The end of the run waits for its process and connection.
func (r *run) forget(m *member) {
	r.retired = append(slices.DeleteFunc(r.retired, (*member).over), m) // a run may lose many
	if m.out != nil {
		close(m.out)
		m.out = nil
	}
}
