package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// wire makes two hosts joined by Ethernet of MTU 1500.
func wire() (p place, err error) {
	tb := &labTB{}
	defer func() {
		if r := recover(); r != nil {
			tb.close()
			err = fmt.Errorf("%v", r)
		}
	}()
	lab := netlab.New(tb)
	a, b := lab.Host("called"), lab.Host("caller")
	x, y := lab.Join(a, b, netlab.Wire{})
	return place{
		name: "veth, MTU 1500", hosts: [2]string{x.IPv4.String(), y.IPv4.String()},
		start: [2]func(func() error) error{a.Do, b.Do}, close: tb.close,
	}, nil
}

// labTB lets a program use the lab, which is made for tests: what would end a test
// ends the making of the lab instead.
type labTB struct {
	testing.TB
	cleanups []func()
}

func (t *labTB) Helper()                        {}
func (t *labTB) Cleanup(f func())               { t.cleanups = append(t.cleanups, f) }
func (t *labTB) Skip(a ...any)                  { panic(errors.New(fmt.Sprint(a...))) }
func (t *labTB) Skipf(s string, a ...any)       { panic(fmt.Errorf(s, a...)) }
func (t *labTB) Fatalf(s string, a ...any)      { panic(fmt.Errorf(s, a...)) }
func (t *labTB) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }

func (t *labTB) close() {
	for len(t.cleanups) > 0 {
		last := len(t.cleanups) - 1
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		f()
	}
}
