package solver
import ("testing";"fmt";"math";"time")
func TestProfileTune(t *testing.T) {
	for name, kappa := range map[string]Function{
		"smooth": func(q Point) float64 { return 1+q[0]+0.5*math.Sin(3*q[1]+q[2]) },
		"jump10": func(q Point) float64 { if q[0]+q[1]>0.8 {return 10}; return 1 },
		"jump1000": func(q Point) float64 { if q[0]+q[1]>0.8 {return 1000}; return 1 },
		"axis100": func(q Point) float64 { if q[0]>0.4 {return 100}; return 1 },
		"osc": func(q Point) float64 { return 1.2+math.Sin(200*q[0]) },
	} {
		for _, n := range [][3]int{{500,1,1},{63,63,1},{300,300,1},{1000,1000,1},{31,31,31},{95,95,95},{127,127,127}} {
			dim := 3
			if n[2]==1 {dim=2}
			if n[1]==1 {dim=1}
			p := membrane(n, dim)
			p.Diffusion.Of = kappa
			p.Velocity[0].Value = 5
			s := time.Now()
			f, err := newProfile(p)
			if err != nil { t.Fatal(err) }
			d1 := time.Since(s); s=time.Now()
			b, _ := newBlock(p, Box{Hi: p.N})
			d2 := time.Since(s); s=time.Now()
			least, top := b.checkProfile(f, make([]float64, b.layout.Len()))
			fmt.Println(name, n, least, top, top/least, d1, d2, time.Since(s))
		}
	}
}
