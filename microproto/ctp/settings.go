package ctp

import (
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// settings are the options from which a micro-protocol of this package is made. They keep the
// first error.
type settings struct {
	named
	options microproto.Options
	err     error
}

// named implements MicroProtocol.Name.
type named string

// Name implements microproto.MicroProtocol.
func (n named) Name() string { return string(n) }

// constructor returns the Constructor of the micro-protocol of that name.
func constructor(name string, f func(*settings) microproto.MicroProtocol) microproto.Constructor {
	return func(o microproto.Options) (microproto.MicroProtocol, error) {
		s := &settings{named: named(name), options: o}
		mp := f(s)
		return mp, s.err
	}
}

// option returns a setting, def if it is absent. It is an error if the setting is out of bounds.
func option[T int | uint16 | uint32 | uint64 | time.Duration](s *settings, key string, def, low, high T) T {
	v, ok := s.options[key]
	if !ok {
		return def
	}
	if s.err == nil && (v < int64(low) || v > int64(high)) {
		s.err = fmt.Errorf("ctp: option %q is %d; %d to %d are allowed", key, v, int64(low), int64(high))
	}
	return T(v)
}

// queue returns the size in bytes of a receiver's queue: OptionReceive or OptionPeerReceive.
func (s *settings) queue(key string) uint64 {
	return option[uint64](s, key, defaultReceive, messageCost, math.MaxInt64)
}

func (s *settings) rtoFloor() time.Duration {
	return option(s, OptionRTOFloor, defaultRTOFloor, 1, time.Hour)
}

// ackDelay returns the longest delay of an acknowledgement.
func (s *settings) ackDelay() time.Duration {
	return option(s, OptionAckDelay, min(s.rtoFloor()/4, 25*time.Millisecond), 0, time.Second)
}

// bind binds a handler at normal priority.
func bind[T any](b *microproto.Binder, e microproto.Event[T], h microproto.Handler[T]) {
	microproto.Bind(b, e, microproto.Normal, h)
}

// declareCell, lookupCell, lookupAttr and wireAttr set a variable to a cell or an attribute of
// its type.
func declareCell[T any](b *microproto.Binder, name string, to **T, initial T) {
	*to = microproto.DeclareCell(b, name, initial)
}

func lookupCell[T any](b *microproto.Binder, name string, to **T) {
	*to = microproto.LookupCell[T](b, name)
}

func lookupAttr[T microproto.Word](b *microproto.Binder, name string, to *microproto.Attr[T]) {
	*to = microproto.LookupAttr[T](b, name)
}

func wireAttr[T microproto.Word](b *microproto.Binder, name string, to *microproto.Attr[T]) {
	*to = microproto.WireAttr[T](b, name)
}
