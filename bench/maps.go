package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A map is the ratio of virtual times until the tolerance is met, synchronous to asynchronous, of a cluster with one
// slow machine by how slow that is and how far the machines are apart.
type ratioMap struct {
	imbalances []float64
	latencies  []time.Duration
	sync       [][]float64 // seconds, by latency and imbalance
	async      [][]float64
}

// ratio is that of a place on the map.
func (m *ratioMap) ratio(latency, imbalance int) float64 {
	return m.sync[latency][imbalance] / m.async[latency][imbalance]
}

// Dims, Z, X and Y implement plotter.GridXYZ: places are equally far apart, and a ratio and
// its inverse have colours as strong.
func (m *ratioMap) Dims() (c, r int)   { return len(m.imbalances), len(m.latencies) }
func (m *ratioMap) Z(c, r int) float64 { return math.Log2(m.ratio(r, c)) }
func (m *ratioMap) X(c int) float64    { return float64(c) }
func (m *ratioMap) Y(r int) float64    { return float64(r) }

// mapMachines are three a side, so that the one in the middle has six neighbours.
const mapMachines = 27

// mapTrial is a place on the map: 12³ points, each standing for 21 a side, so that a
// machine relaxes as many points and sends as many bytes as with 252³.
func mapTrial(imbalance float64, latency time.Duration, s iterate.Scheme) trial {
	return trial{
		cluster: "graphene-ib", machines: mapMachines, side: 12, standing: 21, scheme: s,
		change: func(m *cluster.Model) {
			m.Networks[0].Latency, m.Networks[0].Jitter = latency, latency/4
			for i := range m.Hosts {
				m.Hosts[i].Jitter = 0.05
			}
			m.Hosts[mapMachines/2].Slow = imbalance
		},
	}
}

// explore plays every place of a map under both schemes.
func (m *ratioMap) explore(ctx context.Context) error {
	wide := len(m.imbalances)
	for range m.latencies {
		m.sync = append(m.sync, make([]float64, wide))
		m.async = append(m.async, make([]float64, wide))
	}
	return each(ctx, len(m.latencies)*wide, func(ctx context.Context, i int) error {
		l, k := i/wide, wide-1-i%wide
		both := [2]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()}
		for s, into := range [2]*float64{&m.sync[l][k], &m.async[l][k]} {
			t := mapTrial(m.imbalances[k], m.latencies[l], both[s])
			r, err := t.play(ctx)
			if err != nil {
				return fmt.Errorf("imbalance %g, latency %v: %w", m.imbalances[k], m.latencies[l], err)
			}
			*into = r.Met.After.Seconds()
		}
		return nil
	})
}

// maps is where each scheme wins: by imbalance and latency, and when things go wrong.
func maps(ctx context.Context, b *bench) error {
	began := time.Now()
	m := &ratioMap{
		imbalances: []float64{1, 1.5, 2, 4, 8},
		latencies:  []time.Duration{10 * time.Microsecond, 200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond},
	}
	if err := m.explore(ctx); err != nil {
		return err
	}
	for l, latency := range m.latencies {
		for k, imbalance := range m.imbalances {
			b.report.add(over("map", fmt.Sprintf("one way %v, one machine of %d %g times slower: virtual time until the tolerance is met, synchronous / asynchronous", latency, mapMachines, imbalance), "ratio", []float64{m.ratio(l, k)}))
		}
	}
	b.report.add(over("map", "the map", "s of the clock", []float64{time.Since(began).Seconds()}).atMost(180))
	if !b.dry {
		base := filepath.Join(b.root, "docs", "pictures", "map")
		if err := m.draw(base + ".png"); err != nil {
			return err
		}
		if err := m.write(base + ".csv"); err != nil {
			return err
		}
	}
	return b.faults(ctx)
}

// write puts the map into a file of comma-separated values.
func (m *ratioMap) write(path string) error {
	rows := [][]string{{"latency_s", "imbalance", "sync_s", "async_s", "sync_over_async"}}
	for l, latency := range m.latencies {
		for k, imbalance := range m.imbalances {
			row := []string{}
			for _, v := range []float64{latency.Seconds(), imbalance, m.sync[l][k], m.async[l][k], m.ratio(l, k)} {
				row = append(row, strconv.FormatFloat(v, 'g', 6, 64))
			}
			rows = append(rows, row)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	if err := w.WriteAll(rows); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// draw makes the figure: blue where the synchronous scheme is faster, red where the other is.
func (m *ratioMap) draw(path string) error {
	p := plot.New()
	p.Title.Text = "Virtual time until the tolerance is met, synchronous / asynchronous"
	p.X.Label.Text, p.Y.Label.Text = "one machine slower by", "one way between machines"
	var across, up []plot.Tick
	for k, v := range m.imbalances {
		across = append(across, plot.Tick{Value: float64(k), Label: fmt.Sprintf("%g×", v)})
	}
	labels := plotter.XYLabels{}
	for l, v := range m.latencies {
		up = append(up, plot.Tick{Value: float64(l), Label: v.String()})
		for k := range m.imbalances {
			labels.XYs = append(labels.XYs, plotter.XY{X: float64(k), Y: float64(l)})
			labels.Labels = append(labels.Labels, fmt.Sprintf("%.2f", m.ratio(l, k)))
		}
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(across), plot.ConstantTicks(up)
	colours := moreland.SmoothBlueRed()
	const most = 3 // a factor of 8
	colours.SetMin(-most)
	colours.SetMax(most)
	heat := plotter.NewHeatMap(m, colours.Palette(255))
	heat.Min, heat.Max = -most, most
	heat.Underflow, heat.Overflow = heat.Palette.Colors()[0], heat.Palette.Colors()[254]
	numbers, err := plotter.NewLabels(labels)
	if err != nil {
		return fmt.Errorf("the map's figure: %w", err)
	}
	for i := range numbers.TextStyle {
		numbers.TextStyle[i].XAlign, numbers.TextStyle[i].YAlign = draw.XCenter, draw.YCenter
	}
	p.Add(heat, numbers)
	return p.Save(16*vg.Centimeter, 11*vg.Centimeter, path)
}
