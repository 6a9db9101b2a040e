package launch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// transcript is a text of the events of a run and of their effects, in their order. Ticks and heartbeats that have
// no effect but on the status, or ask about silent peers, are left out.
type transcript struct{ strings.Builder }

// handle lets a run handle an event and records it with its effects, which it returns.
func (t *transcript) handle(r *run, now time.Duration, o event) []effect {
	r.now = now
	text := eventText(o) // names are those before the event
	r.handle(o)
	effects := r.take()
	_, beat := o.message.(rendezvous.Beat)
	usual := func(e effect) bool {
		text := effectText(e)
		return text == "" || strings.HasPrefix(text, "status") || strings.HasPrefix(text, "look") ||
			strings.HasSuffix(text, "Probe{}")
	}
	if (beat || o.tick != nil) && !slices.ContainsFunc(effects, func(e effect) bool { return !usual(e) }) {
		return effects
	}
	fmt.Fprintf(t, "%v %s\n", now, text)
	t.list(effects)
	return effects
}

func (t *transcript) list(effects []effect) {
	for _, e := range effects {
		if text := effectText(e); text != "" {
			fmt.Fprintf(t, "\t%s\n", text)
		}
	}
}

func nameOf(m *member) string {
	s := fmt.Sprintf("peer %d", m.rank)
	if m.conn != 0 {
		s += fmt.Sprintf(", connection %d", m.conn)
	}
	if m.child != 0 {
		s += fmt.Sprintf(", child %d", m.child)
	}
	return s
}

func eventText(o event) string {
	switch {
	case o.joined != nil:
		return fmt.Sprintf("connection %d joins: %s", o.joined.conn, valueText(o.joined.join))
	case o.decided != nil:
		return "decided: " + valueText(*o.decided)
	case o.tick != nil:
		s := "tick"
		for _, m := range o.tick.blocked {
			s += "; blocked: " + nameOf(m)
		}
		for _, k := range o.tick.seen {
			s += fmt.Sprintf("; %s: stopped %t, silent %v %t", nameOf(k.of), k.stopped, k.silent, k.known)
		}
		if o.tick.captures {
			s += "; an iterate is wanted"
		}
		if o.tick.sample != nil {
			s += "; wanted: " + valueText(*o.tick.sample)
		}
		return s
	case o.asked != 0:
		return map[request]string{toStop: "the user asks to stop", toEnd: "the user asks to end"}[o.asked]
	case o.restarted:
		return fmt.Sprintf("time steps begin again after step %d", o.steps.done)
	case o.started != nil:
		return fmt.Sprintf("%s: started child %d, %v", nameOf(o.of), o.child, o.started.err)
	case o.refused != nil:
		return fmt.Sprintf("%s: not welcomed, %v", nameOf(o.of), o.refused)
	case o.exited:
		return fmt.Sprintf("%s: child %d has ended, %v", nameOf(o.of), o.child, o.exit)
	case o.closed != nil:
		return fmt.Sprintf("%s: closed, %v", nameOf(o.of), o.closed)
	case o.bytes > 0:
		return fmt.Sprintf("%s: %d bytes of its block", nameOf(o.of), o.bytes)
	case o.message == nil:
		return nameOf(o.of) + ": a part of values"
	}
	s := nameOf(o.of) + ": " + valueText(o.message)
	if o.values != nil {
		s += fmt.Sprintf(" with %d values", len(o.values))
	}
	return s
}

func effectText(e effect) string {
	switch e := e.(type) {
	case send:
		if e.to.conn == 0 {
			return ""
		}
		return fmt.Sprintf("to %s: %s", nameOf(e.to), valueText(e.msg))
	case passOn:
		return fmt.Sprintf("to %s: copies of the blocks of %v", nameOf(e.to), e.ranks)
	case welcome:
		return fmt.Sprintf("welcome %s: %s", nameOf(e.of), valueText(e.msg))
	case refuse:
		return fmt.Sprintf("refuse connection %d, later %t: %s", e.conn, e.later, e.why)
	case start:
		return fmt.Sprintf("start a child for %s in seat %d", nameOf(e.of), e.seat)
	case look:
		return "look at " + nameOf(e.at)
	case displace:
		return fmt.Sprintf("displace %s, back %t", nameOf(e.of), e.back)
	case disconnect:
		return "disconnect " + nameOf(e.of)
	case finish:
		return "finish " + nameOf(e.of)
	case retire:
		return "retire " + nameOf(e.of)
	case logged:
		s := [...]string{"debug", "info", "warn"}[e.level] + ": " + e.text
		for i := 0; i < len(e.fields); i += 2 {
			s += fmt.Sprintf(", %v %v", e.fields[i], e.fields[i+1])
		}
		return s
	case note:
		return "note: " + strings.TrimSpace(e.text)
	case updated:
		if c, is := e.change.(*composed); is {
			return fmt.Sprintf("status: epoch %d, term %d, losses %d, moves %d, members %d",
				c.epoch, c.term.Number, len(c.losses), len(c.moves), len(c.members))
		}
		return "status: " + valueText(e.change)
	case progress:
		return "" // follows from the status
	}
	return valueText(e)
}

// valueText returns the type of a value and its fields that are not zero. Of arrays it returns the size.
func valueText(v any) string { return textOf(reflect.ValueOf(v), true) }

func textOf(v reflect.Value, named bool) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return textOf(v.Elem(), named)
	case reflect.Struct:
		name, fields := "", []string(nil)
		if named {
			name = v.Type().Name()
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if v.Field(i).IsZero() || f.Type == reflect.TypeFor[rendezvous.Spec]() || f.Name == "Key" {
				continue
			}
			fields = append(fields, f.Name+" "+textOf(v.Field(i), false))
		}
		return name + "{" + strings.Join(fields, ", ") + "}"
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k == reflect.Uint8 || k == reflect.Float64 || v.Type() == reflect.TypeFor[[]Loss]() {
			return fmt.Sprintf("[%d]", v.Len())
		}
		var all []string
		for i := range v.Len() {
			all = append(all, textOf(v.Index(i), false))
		}
		return "[" + strings.Join(all, " ") + "]"
	case reflect.Func:
		return "func"
	case reflect.Map:
		return fmt.Sprintf("map[%d]", v.Len())
	}
	if named {
		return fmt.Sprintf("%s(%v)", v.Type().Name(), v)
	}
	return fmt.Sprint(v)
}
