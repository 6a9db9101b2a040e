package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/experiments/internal/published"
	"github.com/p2pdc/p2pdc/internal/measure"
)

// predictPublished predicts the published table, adds every cell, and writes the tables of
// docs/published.md and the figure.
func predictPublished(ctx context.Context, r *measure.Run) error {
	start := time.Now()
	boxes, err := boxesInstead(ctx)
	if err != nil {
		return err
	}
	ours, err := newReplay(pillars)
	if err != nil {
		return err
	}
	k, err := ours.fit(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Log(), "published: %.0f sweeps, %.3f ns a byte\n", k.sweeps, k.byte)
	p, err := ours.predict(ctx, k, published.Cells(), func(c published.Cell, seconds float64) {
		fmt.Fprintf(r.Log(), "published: %v: %.0f s\n", c, seconds)
	})
	if err != nil {
		return err
	}
	v, err := published.Evaluate(p.whole(), fittedCells()...)
	if err != nil {
		return err
	}
	lines, err := p.results(ours, v)
	if err != nil {
		return err
	}
	r.Add(lines...)
	r.Add(measure.One("time of the simulation", "s", time.Since(start).Seconds()))
	models := modelTable(p.models(boxes))
	fmt.Print(p.markdown(), "\n", models, "\n", p.staleTable(), "\n")
	for _, w := range v.Wrong {
		fmt.Println("wrong order:", w)
	}
	if r.Dry {
		return nil
	}
	doc := filepath.Join(r.Root, "docs", "published.md")
	sections := map[string]string{"table": p.markdown(), "models": models, "staleness": p.staleTable()}
	if err := measure.FillFile(doc, sections); err != nil {
		return err
	}
	return figure5(filepath.Join(r.Root, "docs", "pictures", "figure5.png"), p.whole())
}

// boxesInstead predicts the synchronous columns with the domain cut into boxes, fitted on the same
// cells.
func boxesInstead(ctx context.Context) (*prediction, error) {
	r, err := newReplay(cubes)
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

// results returns the results of the part; the cells are details, shown in docs/published.md.
func (p *prediction) results(r *replay, v published.Verdict) ([]measure.Result, error) {
	one := measure.One
	t, m := p.whole(), published.Measured()
	var out []measure.Result
	for _, c := range published.Cells() {
		cell := one(c.String(), "s", t.At(c)).Against("published", []float64{m.At(c)}).AsDetail()
		if slices.Contains(fittedCells(), c) {
			cell.Name += ", fitted"
		} else {
			cell = cell.Between(math.Ceil(0.92*m.At(c)), math.Floor(1.08*m.At(c)))
		}
		out = append(out, cell)
	}
	model, err := r.ether.Model(1)
	if err != nil {
		return nil, err
	}
	relaxation := published.Points * p.k.sweeps / published.Sequential
	described := model.Hosts[0]
	low, mean, high := p.missing()
	return append(out,
		one(fmt.Sprintf("largest error of the %d predicted cells, at %v", v.Cells, v.At), "%", v.Worst).AtMost(5),
		one("median of their errors", "%", v.Median).AtMost(2),
		one(fmt.Sprintf("of %d pairs of columns more than 5 %% apart, in the wrong order", v.Pairs), "pairs",
			float64(len(v.Wrong))).AtMost(0),
		one("sweeps of a synchronous run, fitted on "+fittedCells()[0].String(), "sweeps", p.k.sweeps),
		one("processor time of the protocol at one end, fitted on "+fittedCells()[1].String(), "ns per byte", p.k.byte).
			Against("description graphene-eth", []float64{described.Send.Byte}).RatioAtLeast(0.98).RatioAtMost(1.02),
		measure.Result{Name: "time of asynchronous cells / predicted without 6/5, mean of 10", Unit: "ratio", Value: mean,
			Low: low, High: high},
		one("relaxation speed, fitted", "point/s", relaxation).
			Against("description graphene-eth", []float64{described.Relaxation}).RatioAtLeast(0.99).RatioAtMost(1.01),
	), nil
}
