package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/p2pdc/p2pdc/internal/measure"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// ratioMap is the ratio of virtual times until the tolerance is met, synchronous / asynchronous, on
// a cluster with one slow machine, by its slowdown and by the latency of the network.
type ratioMap struct {
	slowdowns []float64
	latencies []time.Duration
	sync      [][]float64 // seconds, by latency and slowdown
	async     [][]float64
}

func (m *ratioMap) ratio(latency, slowdown int) float64 {
	return m.sync[latency][slowdown] / m.async[latency][slowdown]
}

// Dims, Z, X and Y implement plotter.GridXYZ. The values are equally spaced, and a ratio and its
// inverse have colours of the same strength.
func (m *ratioMap) Dims() (c, r int)   { return len(m.slowdowns), len(m.latencies) }
func (m *ratioMap) Z(c, r int) float64 { return math.Log2(m.ratio(r, c)) }
func (m *ratioMap) X(c int) float64    { return float64(c) }
func (m *ratioMap) Y(r int) float64    { return float64(r) }

// mapMachines is 3³, so that the machine in the middle has six neighbours.
const mapMachines = 27

// mapSample returns a run of the map: 12³ points on a scale of 21, so that a machine relaxes as many
// points and sends as many bytes as with 252³.
func mapSample(slowdown float64, latency time.Duration, s iterate.Scheme) measure.Sample {
	return measure.Sample{
		Cluster: "graphene-ib", Machines: mapMachines, Side: 12, Scale: 21, Scheme: s,
		Change: func(m *cluster.Model) {
			m.Networks[0].Latency, m.Networks[0].Jitter = latency, latency/4
			for i := range m.Hosts {
				m.Hosts[i].Jitter = 0.05
			}
			m.Hosts[mapMachines/2].Slow = slowdown
		},
	}
}

// explore fills the map.
func (m *ratioMap) explore(ctx context.Context) error {
	columns := len(m.slowdowns)
	for range m.latencies {
		m.sync = append(m.sync, make([]float64, columns))
		m.async = append(m.async, make([]float64, columns))
	}
	return measure.Each(ctx, len(m.latencies)*columns, func(ctx context.Context, i int) error {
		l, k := i/columns, columns-1-i%columns
		schemes := [2]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()}
		for i, seconds := range [2]*float64{&m.sync[l][k], &m.async[l][k]} {
			s := mapSample(m.slowdowns[k], m.latencies[l], schemes[i])
			r, err := s.Play(ctx)
			if err != nil {
				return fmt.Errorf("slowdown %g, latency %v: %w", m.slowdowns[k], m.latencies[l], err)
			}
			*seconds = r.Met.After.Seconds()
		}
		return nil
	})
}

// ratioMaps explores the map and draws it.
func ratioMaps(ctx context.Context, r *measure.Run) error {
	began := time.Now()
	m := &ratioMap{
		slowdowns: []float64{1, 1.5, 2, 4, 8},
		latencies: []time.Duration{
			10 * time.Microsecond, 200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond,
		},
	}
	if err := m.explore(ctx); err != nil {
		return err
	}
	for l, latency := range m.latencies {
		for k, slowdown := range m.slowdowns {
			name := fmt.Sprintf("latency %v, one machine of %d %g times slower: synchronous", latency, mapMachines, slowdown)
			line := measure.One(name, "s", m.sync[l][k]).Against("asynchronous", m.async[l][k:k+1])
			if slowdown != 1 && slowdown != 4 {
				line = line.AsDetail()
			}
			r.Add(line)
		}
	}
	r.Add(measure.One("time of the simulations", "s", time.Since(began).Seconds()).AtMost(180))
	if r.Dry {
		return nil
	}
	base := filepath.Join(r.Root, "docs", "pictures", "map")
	return errors.Join(m.draw(base+".png"), m.write(base+".csv"))
}

// write writes the map as comma-separated values.
func (m *ratioMap) write(path string) error {
	rows := [][]string{{"latency_s", "imbalance", "sync_s", "async_s", "sync_over_async"}}
	for l, latency := range m.latencies {
		for k, slowdown := range m.slowdowns {
			row := []string{}
			for _, v := range []float64{latency.Seconds(), slowdown, m.sync[l][k], m.async[l][k], m.ratio(l, k)} {
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

// draw draws the map: blue where the synchronous scheme is faster, red where the asynchronous one is.
func (m *ratioMap) draw(path string) error {
	p := plot.New()
	p.Title.Text = "Virtual time until the tolerance is met, synchronous / asynchronous"
	p.X.Label.Text, p.Y.Label.Text = "slowdown of one machine", "latency between machines"
	var across, up []plot.Tick
	for k, v := range m.slowdowns {
		across = append(across, plot.Tick{Value: float64(k), Label: fmt.Sprintf("%g×", v)})
	}
	labels := plotter.XYLabels{}
	for l, v := range m.latencies {
		up = append(up, plot.Tick{Value: float64(l), Label: v.String()})
		for k := range m.slowdowns {
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
		return fmt.Errorf("figure of the map: %w", err)
	}
	for i := range numbers.TextStyle {
		numbers.TextStyle[i].XAlign, numbers.TextStyle[i].YAlign = draw.XCenter, draw.YCenter
	}
	p.Add(heat, numbers)
	return savePlot(path, p, 16*vg.Centimeter, 11*vg.Centimeter)
}
