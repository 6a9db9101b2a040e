package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/bench/internal/published"
)

// predictPublished predicts the published table, reports every cell, and writes the tables of
// docs/published.md and the figure.
func predictPublished(ctx context.Context, b *bench) error {
	start := time.Now()
	boxes, err := boxesInstead(ctx)
	if err != nil {
		return err
	}
	ours, err := newRehearsal(pillars)
	if err != nil {
		return err
	}
	k, err := ours.fit(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "published: %.0f sweeps, %.3f ns a byte\n", k.sweeps, k.byte)
	p, err := ours.predict(ctx, k, published.Cells(), func(c published.Cell, seconds float64) {
		fmt.Fprintf(os.Stderr, "published: %v: %.0f s\n", c, seconds)
	})
	if err != nil {
		return err
	}
	v, err := published.Judge(p.whole(), fittedCells()...)
	if err != nil {
		return err
	}
	lines, err := p.measurements(ours, v)
	if err != nil {
		return err
	}
	b.report.add(lines...)
	b.report.add(over("published", "time that it took to simulate", "s", []float64{time.Since(start).Seconds()}))
	rungs := p.rungs(boxes)
	fmt.Print(p.markdown(), "\n", ladder(rungs), "\n")
	for _, w := range v.Wrong {
		fmt.Println("wrong order:", w)
	}
	if b.dry {
		return nil
	}
	doc := filepath.Join(b.root, "docs", "published.md")
	if err := fill(doc, map[string]string{"table": p.markdown(), "models": ladder(rungs), "staleness": p.staleness()}); err != nil {
		return err
	}
	return figure5(filepath.Join(b.root, "docs", "pictures", "figure5.png"), p.whole())
}

// boxesInstead is the synchronous part of the table with the domain cut into boxes, fitted on
// the same cells.
func boxesInstead(ctx context.Context) (*prediction, error) {
	r, err := newRehearsal(cubes)
	if err != nil {
		return nil, err
	}
	k, err := r.fit(ctx)
	if err != nil {
		return nil, err
	}
	sync := slices.DeleteFunc(published.Cells(), func(c published.Cell) bool { return c.Column.Async() })
	return r.predict(ctx, k, sync, func(published.Cell, float64) {})
}

// measurements are the lines of the report.
func (p *prediction) measurements(r *rehearsal, v published.Verdict) ([]measurement, error) {
	one := func(name, unit string, x float64) measurement { return over("published", name, unit, []float64{x}) }
	t, m := p.whole(), published.Measured()
	var out []measurement
	for _, c := range published.Cells() {
		name := fmt.Sprintf("%v: %.0f published, error %+.1f %%", c, m.At(c), t.Error(c))
		if slices.Contains(fittedCells(), c) {
			out = append(out, one(name+", fitted", "s", t.At(c)))
			continue
		}
		out = append(out, one(name, "s", t.At(c)).between(math.Ceil(0.92*m.At(c)), math.Floor(1.08*m.At(c))))
	}
	model, err := r.ether.Model(1)
	if err != nil {
		return nil, err
	}
	relaxation := published.Points * p.k.sweeps / published.Sequential
	return append(out,
		one(fmt.Sprintf("largest error of the %d cells that are predicted, at %v", v.Cells, v.At), "%", v.Worst).atMost(8),
		one("median of their errors", "%", v.Median).atMost(3),
		one(fmt.Sprintf("of %d pairs of columns more than 5 %% apart, in the wrong order", v.Pairs), "pairs", float64(len(v.Wrong))).atMost(0),
		one("sweeps of a synchronous run, fitted on "+fittedCells()[0].String(), "sweeps", p.k.sweeps),
		one("protocol's processor at one end, fitted on "+fittedCells()[1].String(), "ns per byte", p.k.byte),
		one("relaxations of an asynchronous run by those of a synchronous one beyond staleness, fitted on "+fittedCells()[2].String(), "ratio", p.k.async),
		one("relaxation, fitted / of the description graphene-eth", "ratio", relaxation/model.Hosts[0].Relaxation).between(0.99, 1.01),
		one("cost of a byte, fitted / of the description graphene-eth", "ratio", p.k.byte/model.Hosts[0].Send.Byte).between(0.98, 1.02),
	), nil
}

// fill replaces what stands between the comments <!-- name: begin --> and <!-- name: end -->
// of a file.
func fill(path string, parts map[string]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for name, part := range parts {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
		i := bytes.Index(text, []byte(begin))
		j := bytes.Index(text, []byte(end))
		if i < 0 || j < i {
			return fmt.Errorf("%s: there are no lines %q and %q, in this order, to put the table between", path, strings.TrimSpace(begin), end)
		}
		text = slices.Concat(text[:i+len(begin)], []byte(part), text[j:])
	}
	return os.WriteFile(path, text, 0o644)
}
