package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// drawnProblem returns a problem on a square of 5 to 100 points per axis: disks, boxes, stripes or cells of a contrast of
// up to 1e±4, weak flows or none, one obstacle or two.
func drawnProblem(seed uint64) *problem.Problem {
	r := rand.New(rand.NewPCG(seed, 34))
	n := 5 + r.IntN(96)
	contrast := math.Pow(10, 8*r.Float64()-4)
	x, y, size, angle := r.Float64(), r.Float64(), 0.05+0.3*r.Float64(), math.Pi*r.Float64()
	if r.IntN(2) == 0 {
		angle = math.Pi / 2 * float64(r.IntN(2))
	}
	wave := 3 + 60*r.Float64()
	kinds := []string{"disk", "box", "stripes", "cells"}
	kind := kinds[r.IntN(len(kinds))]
	inside := map[string]func(q problem.Point) bool{
		"disk": func(q problem.Point) bool { return (q[0]-x)*(q[0]-x)+(q[1]-y)*(q[1]-y) < size*size },
		"box":  func(q problem.Point) bool { return math.Abs(q[0]-x) < size && math.Abs(q[1]-y) < size/2 },
		"stripes": func(q problem.Point) bool {
			return math.Sin(wave*(math.Cos(angle)*q[0]+math.Sin(angle)*q[1])+x) > 0
		},
		"cells": func(q problem.Point) bool { return math.Sin(wave*q[0]+x)*math.Sin(wave*q[1]+y) > 0.2 },
	}[kind]
	p := &problem.Problem{
		Name:      fmt.Sprintf("%d: %s of contrast %.2g, %d points", seed, kind, contrast, n),
		Dimension: 2, N: [3]int{n, n, 1}, Hi: problem.Point{1, 1},
		Source: problem.Coefficient{Value: 200*r.Float64() - 100}, Boundary: func(problem.Point) float64 { return 0 },
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 {
			if inside(q) {
				return contrast
			}
			return 1
		}},
	}
	low, up := 0.01+r.Float64(), 0.01+r.Float64()
	p.Obstacle = func(q problem.Point) float64 { return low * (0.5*math.Sin(9*q[0]+y) - 0.6) }
	if r.IntN(2) == 0 {
		p.Upper = func(q problem.Point) float64 { return up * (0.6 + 0.5*math.Sin(7*q[1]+x)) }
		p.Name += ", two obstacles"
	}
	if r.IntN(3) == 0 {
		speed := math.Pow(10, 4*r.Float64()-3)
		p.Upwind = true
		p.Velocity = [3]problem.Coefficient{
			{Of: func(q problem.Point) float64 { return speed * (q[1] - x) }},
			{Of: func(q problem.Point) float64 { return speed * (y - q[0]) }},
		}
		p.Name += fmt.Sprintf(", flow %.2g", speed)
	}
	return p
}

// TestDrawnProblems checks answers of the method that Solve chooses against those of sor at a much smaller tolerance: the
// difference is at most the error bounds, and the work bounded.
func TestDrawnProblems(t *testing.T) {
	seeds := uint64(50)
	if testing.Short() {
		seeds = 13
	}
	for seed := range seeds {
		p := drawnProblem(seed)
		s, err := Solve(t.Context(), p, Options{Threads: 1, MaxSweeps: 20000})
		require.NoError(t, err, p.Name)
		exact, err := Solve(t.Context(), p, Options{
			Threads: 1, Initial: s.U, Tolerance: 1e-11, MaxSweeps: 100000, Method: problem.MethodConfig{Name: problem.SOR},
		})
		if exact.Reason != iterate.Stagnated { // by rounding
			require.NoError(t, err, p.Name)
		}
		difference := 0.0
		for i, v := range s.U {
			difference = max(difference, math.Abs(v-exact.U[i]))
		}
		work, bound := float64(s.Peers[0].Points)/float64(p.Points()), s.Evaluation.ErrorBound
		t.Logf("%s: %s, %s; work %.0f, difference %.2g, error bound %.2g", p.Name, s.Choice.Name, s.Method, work, difference, bound)
		require.Greater(t, bound, 0.0, p.Name)
		require.LessOrEqual(t, difference, bound+exact.Evaluation.ErrorBound, p.Name)
		require.LessOrEqual(t, work, 15000.0, p.Name)
	}
}
