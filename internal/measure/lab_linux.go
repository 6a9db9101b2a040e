package measure

import (
	"cmp"
	"fmt"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// InLab calls f with a reporter for a network laboratory, and removes the laboratory afterwards.
func InLab(f func(r netlab.Reporter) error) error {
	remove, err := OpenLab(f)
	remove()
	return err
}

// OpenLab calls f with a reporter for a network laboratory. The laboratory exists until remove is
// called, also after an error.
func OpenLab(f func(r netlab.Reporter) error) (remove func(), err error) {
	tb := &labTB{}
	defer func() {
		if r := recover(); r != nil {
			reason, _ := r.(error)
			err = fmt.Errorf("network laboratory: %w", cmp.Or(reason, fmt.Errorf("%v", r)))
		}
	}()
	remove = tb.close
	return remove, f(tb)
}

// labTB lets a program use the laboratory, which is made for tests. Where a test would end, it
// panics, and OpenLab returns the error.
type labTB struct{ cleanups []func() }

func (t *labTB) Helper()          {}
func (t *labTB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *labTB) Skipf(s string, a ...any) {
	panic(fmt.Errorf("%w: "+s, append([]any{ErrUnavailable}, a...)...))
}
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
