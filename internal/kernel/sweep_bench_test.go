package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkRelax relaxes an n³ block of the reference case on one core. GLUP/s are billions of points per second.
func BenchmarkRelax(b *testing.B) {
	for _, n := range []int{32, 64, 128, 256} {
		for _, k := range All()[1:] {
			b.Run(fmt.Sprintf("n=%d/%s", n, k.Name()), func(b *testing.B) {
				s, src, dst := membrane(b, n, k)
				b.ReportAllocs()
				for b.Loop() {
					s.Relax(dst, src, src, s.layout.Interior())
					src, dst = dst, src
				}
				b.ReportMetric(float64(b.N)*float64(s.layout.Points())/float64(b.Elapsed().Nanoseconds()), "GLUP/s")
			})
		}
	}
}

// BenchmarkRelaxResidual relaxes and adds the residual of the old iterate.
func BenchmarkRelaxResidual(b *testing.B) {
	for _, k := range All()[1:] {
		b.Run(k.Name(), func(b *testing.B) {
			s, src, dst := membrane(b, 128, k)
			var norm Norm
			b.ReportAllocs()
			for b.Loop() {
				norm.Reset()
				s.RelaxResidual(&norm, dst, src, s.layout.Interior())
				src, dst = dst, src
			}
			b.ReportMetric(float64(b.N)*float64(s.layout.Points())/float64(b.Elapsed().Nanoseconds()), "GLUP/s")
		})
	}
}

// membrane is the 3-D reference case: unit cube, f = 0, φ = 0.5 − 4|x−c|².
func membrane(b *testing.B, n int, k *Kernel) (s *Sweep, src, dst []float64) {
	l, err := NewLayout(3, [3]int{n, n, n})
	if err != nil {
		b.Fatal(err)
	}
	h := 1 / float64(n+1)
	phi := make([]float64, l.Points())
	src, dst = make([]float64, l.Len()), make([]float64, l.Len())
	for _, a := range [][]float64{phi, src, dst} {
		for i := range a {
			a[i] = 1
		}
		clear(a)
	}
	for z := range n {
		for y := range n {
			for x := range n {
				d := [3]float64{float64(x+1)*h - 0.5, float64(y+1)*h - 0.5, float64(z+1)*h - 0.5}
				p := 0.5 - 4*(d[0]*d[0]+d[1]*d[1]+d[2]*d[2])
				phi[l.Dense(x, y, z)] = p
				src[l.Index(x, y, z)] = max(p, 0)
			}
		}
	}
	s, err = New(Config{Layout: l, Kernel: k, Lower: Field{Array: phi}, Upper: NoUpper(),
		Operator: Operator{Diag: 6 / (h * h), Off: 1 / (h * h)}, Step: h * h / 6})
	if err != nil {
		b.Fatal(err)
	}
	s.Relax(dst, src, src, l.Interior()) // the first access allocates the pages
	return s, src, dst
}
