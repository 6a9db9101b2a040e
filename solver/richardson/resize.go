package richardson

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// layer returns the padded index of the first point of plane p, parallel to the face.
func (w *worker) layer(f *face, p int) int {
	var at [3]int
	at[f.to.Axis] = p
	return w.block.Layout.Index(at[0], at[1], at[2])
}

// removePlanes removes planes at the low or high end of the box. Nothing is copied: the remaining values keep
// their place in memory, and the padded arrays shrink to the part that the new layout spans. In one dimension
// the padding depends on the size, so this part need not begin at the beginning of the old arrays.
func (w *worker) removePlanes(side, count int) error {
	old := w.block.Layout
	if err := w.block.RemovePlanes(side, count); err != nil {
		return err
	}
	l := w.block.Layout
	from := old.Origin - l.Origin
	if side < 0 {
		from += count * slowStride(old)
		dense := count * (old.Points() / old.N[old.Dim-1])
		w.Steps.Previous = problem.Tail(w.Steps.Previous, dense)
	} else {
		w.Steps.Previous = problem.Head(w.Steps.Previous, l.Points())
	}
	w.cur = w.cur[from : from+l.Len() : from+l.Len()]
	w.next = w.next[from : from+l.Len() : from+l.Len()]
	return w.resized()
}

// addPlanes adds planes at the low or high end of the box, in new arrays, and evaluates the problem's functions
// there. The caller sets the values of the planes. before holds their dense values at the start of the time
// step; it is nil in a stationary run.
func (w *worker) addPlanes(side, count int, before []float64) error {
	old := w.block.Layout
	part, err := w.block.Adjacent(side, count)
	if err != nil {
		return err
	}
	if before != nil {
		part.AddPrevious(before, w.config.Problem.Evolution.Step())
		w.Steps.Previous = problem.Joined(side, w.Steps.Previous, before)
	}
	if err := w.block.AddPlanes(side, part); err != nil {
		return err
	}
	from := w.block.Layout.Origin - old.Origin
	if side < 0 {
		from += count * slowStride(old)
	}
	for _, a := range []*[]float64{&w.cur, &w.next} {
		room := make([]float64, w.block.Layout.Len())
		copy(room[from:], *a)
		w.block.FillSideGhosts(room, part.Box)
		*a = room
	}
	return w.resized()
}

// resized updates everything that depends on the layout. No pass may be in progress.
func (w *worker) resized() error {
	w.spare = nil
	for _, f := range w.faces {
		f.place(w.block.Layout)
	}
	w.pass.init(w)
	var err error
	w.stepper, err = w.block.Sweep(w.stepLength)
	return err
}

// slowStride returns the distance between two planes in a padded array.
func slowStride(l kernel.Layout) int { return [...]int{1, l.Row, l.Plane}[l.Dim-1] }
