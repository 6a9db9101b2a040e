package file

import (
	"crypto/sha256"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const everyKey = `# every key
dimension: 2
domain: [[-1, 1], [0, 2*pi]]
obstacle: "min(0.5 - x^2, 0)"
upper: {npy: square.npy, scale: 1e1, flip: y}
f: |
  sin(x)
  + y
boundary: obstacle
diffusion: "1 + x^2"
velocity: [1, "y"]
upwind: true
reaction: 0x10
exact: "x"
time: null
`

func parse(t require.TestingT, text string) *Spec {
	s, err := Parse("some/test.yaml", []byte(text), arrays)
	require.NoError(t, err)
	return s
}

// Upwind differences, which preserve the M-matrix, are the default.
func TestUpwindIsTheDefault(t *testing.T) {
	const file = "dimension: 1\ndomain: [[0, 1]]\nobstacle: \"-1\"\nvelocity: [100]\n"
	for text, want := range map[string]bool{file: true, file + "upwind: true\n": true,
		file + "upwind: false\n": false, file + "upwind: null\n": true} {
		p, err := parse(t, text).Build([3]int{9, 1, 1})
		require.NoError(t, err)
		require.Equal(t, want, p.Upwind, text)
		require.Len(t, p.Warnings(), 1)
	}
}

func TestEveryKey(t *testing.T) {
	s := parse(t, everyKey)
	require.Equal(t, "test", s.Name())
	require.Equal(t, 2, s.Dimension())
	p, err := s.Build([3]int{2, 5, 1})
	require.NoError(t, err)
	require.Equal(t, problem.Point{-1, 0}, p.Lo)
	require.Equal(t, problem.Point{1, 2 * math.Pi}, p.Hi)
	q := problem.Point{0.5, 1}
	require.Equal(t, 0.0, p.Obstacle(q))
	require.Equal(t, -0.5, p.Boundary(problem.Point{1, 1}))
	require.InDelta(t, math.Sin(0.5)+1, p.Source.At(q), 1e-15)
	require.Equal(t, 1.25, p.Diffusion.At(q))
	require.Equal(t, 1.0, p.Velocity[0].Value)
	require.True(t, p.Upwind)
	require.Equal(t, 1.0, p.Velocity[1].At(q))
	require.True(t, p.Velocity[2].Constant())
	require.Equal(t, problem.Coefficient{Value: 16}, p.Reaction)
	require.Equal(t, 0.5, p.Exact(q))
	// square.npy contains 10·row + column; row 0 is at the largest y.
	require.Equal(t, 200.0, p.Upper(problem.Point{-1, 0}))
	require.Equal(t, 30.0, p.Upper(problem.Point{1, 2 * math.Pi}))
	require.InDelta(t, 115, p.Upper(problem.Point{0, math.Pi}), 1e-12)
}

func TestDefaults(t *testing.T) {
	p, err := parse(t, "dimension: 1\ndomain: [[0, 1]]\nobstacle: -1\n").BuildValid([]int{7})
	require.NoError(t, err)
	require.Equal(t, problem.Coefficient{Value: 1}, p.Diffusion)
	require.Equal(t, problem.Coefficient{}, p.Source)
	require.Equal(t, [3]problem.Coefficient{}, p.Velocity)
	require.Equal(t, problem.Coefficient{}, p.Reaction)
	require.Equal(t, 0.0, p.Boundary(problem.Point{1}))
	require.Nil(t, p.Upper)
	require.Nil(t, p.Exact)
	p, err = parse(t, "dimension: 1\ndomain: [[0, 1]]\nobstacle: null\nupper: 1\n").BuildValid([]int{7})
	require.NoError(t, err)
	require.Nil(t, p.Obstacle)
}

// An array of the size of the grid with its boundary is not interpolated. x is its last axis.
func TestArraysOnTheirOwnGrid(t *testing.T) {
	p, err := parse(t, "dimension: 3\ndomain: [[0, 1], [0, 1], [0, 1]]\nobstacle: {npy: cube.npy}\nboundary: obstacle\n").BuildValid([]int{1})
	require.NoError(t, err)
	for i := range 8 {
		q := problem.Point{float64(i & 1), float64(i >> 1 & 1), float64(i >> 2)}
		require.Equal(t, float64(i), p.Obstacle(q))
	}
	require.Equal(t, 3.5, p.Obstacle(problem.Point{0.5, 0.5, 0.5}))

	p, err = parse(t, "dimension: 1\ndomain: [[0, 0.3]]\nobstacle: {npy: row.npy, flip: [x]}\nboundary: obstacle\n").BuildValid([]int{3})
	require.NoError(t, err)
	for i, want := range []float64{16, 9, 4, 1, 0} {
		require.Equal(t, want, p.Obstacle(p.At(i, 1, 1)))
	}
}

func TestReadFindsArraysBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.npy"), square(), 0o600))
	path := filepath.Join(dir, "p.yaml")
	require.NoError(t, os.WriteFile(path,
		[]byte("dimension: 2\ndomain: [[0, 1], [0, 1]]\nobstacle: {npy: a.npy}\nboundary: obstacle\n"), 0o600))
	p, d, err := Load(path, []int{2, 1})
	require.NoError(t, err)
	require.Equal(t, "p", d.Name)
	require.Equal(t, 11.0, p.Obstacle(p.At(1, 1, 1)))
	d, err = Check(nil, path)
	require.NoError(t, err)
	require.Contains(t, d.String(), "a.npy, 3 × 4 of int16")
}

func TestBuiltinsAreValidAndMarshal(t *testing.T) {
	for _, b := range problems.All() {
		s, err := Open(nil, b.Name, nil)
		require.NoError(t, err)
		_, err = s.BuildValid([]int{15})
		require.NoError(t, err)
		back, err := UnmarshalSpec(nil, s.Marshal())
		require.NoError(t, err)
		require.Equal(t, s.Fingerprint(), back.Fingerprint())
		require.Equal(t, b.Name, back.Name())
		require.Equal(t, b.Dimension, back.Dimension())
		_, err = Check(nil, b.Name)
		require.NoError(t, err)
	}
}

func TestParametersAreMarshalled(t *testing.T) {
	s, err := Open(nil, "membrane", []string{"c0=0.3"})
	require.NoError(t, err)
	back, err := UnmarshalSpec(nil, s.Marshal())
	require.NoError(t, err)
	p, err := back.Build([3]int{3, 3, 3})
	require.NoError(t, err)
	require.Equal(t, 0.3, p.Obstacle(problem.Point{0.5, 0.5, 0.5}))
	plain, err := Open(nil, "membrane", nil)
	require.NoError(t, err)
	spelt, err := Open(nil, "membrane", []string{"k=4.0", "c0=5e-1"})
	require.NoError(t, err)
	require.NotEqual(t, plain.Fingerprint(), s.Fingerprint())
	require.Equal(t, plain.Fingerprint(), spelt.Fingerprint())
}

func TestFilesAreMarshalledWithTheirArrays(t *testing.T) {
	s := parse(t, everyKey)
	back, err := UnmarshalSpec(nil, s.Marshal())
	require.NoError(t, err)
	require.Equal(t, s.Marshal(), back.Marshal())
	require.Equal(t, s.Describe(), back.Describe())
	q := problem.Point{0.1, 0.7}
	a, err := s.Build([3]int{3, 3, 1})
	require.NoError(t, err)
	b, err := back.Build([3]int{3, 3, 1})
	require.NoError(t, err)
	require.Equal(t, a.Upper(q), b.Upper(q))
	require.Equal(t, a.Source.At(q), b.Source.At(q))

	other, err := Parse("elsewhere.yaml", []byte(everyKey), arrays)
	require.NoError(t, err)
	require.Equal(t, s.Fingerprint(), other.Fingerprint(), "the name has no effect")
	require.NotEqual(t, s.Fingerprint(), parse(t, everyKey+"# more\n").Fingerprint())
	changed, err := Parse("some/test.yaml", []byte(everyKey), func(string) ([]byte, error) {
		b := square()
		b[len(b)-1]++
		return b, nil
	})
	require.NoError(t, err)
	require.NotEqual(t, s.Fingerprint(), changed.Fingerprint(), "a byte of an array has an effect")
}

// Any damage is detected.
func TestDamagedBytesAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := parse(t, everyKey).Marshal()
		if rapid.Bool().Draw(t, "cut") {
			b = b[:rapid.IntRange(0, len(b)-1).Draw(t, "length")]
		} else {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		_, err := UnmarshalSpec(nil, b)
		require.Error(t, err)
	})
}

// withChecksum appends the valid checksum.
func withChecksum(body string) []byte {
	sum := sha256.Sum256([]byte(body))
	return append([]byte(body), sum[:]...)
}

func TestMalformedBytesAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		magic + "x":                                "the problem's bytes are of an unknown kind 'x'",
		magic + "b":                                "the problem's bytes are malformed",
		magic + "b\x08membrane\x00\x00":            "the problem's bytes are malformed",
		magic + "b\x08membrane\xff\xff\x03":        "the problem's bytes are malformed",
		magic + "b\x03men\x00":                     `no built-in problem "men"`,
		magic + "b\x08membrane\x01\x03k=x":         `parameter k="x" is not a finite number`,
		magic + "f\x01a\x00\x00":                   "a: the problem file is empty",
		magic + "f\x01a\xff\xff\xff\xff\xff\x01ab": "the problem's bytes are malformed",
	} {
		_, err := UnmarshalSpec(nil, withChecksum(body))
		require.ErrorContains(t, err, want)
	}
	_, err := UnmarshalSpec(nil, []byte("p2pdc.problem.2\n"+strings.Repeat("x", 40)))
	require.EqualError(t, err, "the bytes are not a problem of this program's version")
	s := parse(t, "dimension: 1\ndomain: [[0, 1]]\nobstacle: -1\n")
	s.arrays = []attachment{{"row.npy", nil}}
	_, err = UnmarshalSpec(nil, s.Marshal())
	require.EqualError(t, err, "the problem's bytes contain an array that the problem file does not name")
	s = parse(t, everyKey)
	s.arrays = nil
	_, err = UnmarshalSpec(nil, s.Marshal())
	require.EqualError(t, err, `some/test.yaml:5: upper.npy: square.npy: the problem's bytes do not contain the array`)
}

func TestValidateChecksProblemsWrittenInGo(t *testing.T) {
	p := &problem.Problem{
		Dimension: 3, Hi: problem.Point{1, 1, 1}, N: [3]int{7, 7, 7},
		Diffusion: problem.Coefficient{Value: 1},
		Obstacle:  func(q problem.Point) float64 { return 1 - q[0] },
		Boundary:  func(problem.Point) float64 { return 0.25 },
	}
	var v *ValueError
	require.ErrorAs(t, Validate(p), &v)
	require.Equal(t, "obstacle", v.Key)
	require.Equal(t, problem.Point{}, v.At, "the worst point, not the first")
	require.EqualError(t, v, "obstacle: the value 1 is above the boundary data's 0.25, by 0.75, at (x, y, z) = (0, 0, 0)")
	// The result does not depend on the core that finds the point.
	for _, slope := range []float64{-0.1, 0.1} {
		p.Obstacle = func(q problem.Point) float64 { return 1 - q[0] + slope*q[2] }
		require.ErrorAs(t, Validate(p), &v)
		require.Equal(t, problem.Point{0, 0, max(0, 10*slope)}, v.At)
	}
	p.Boundary = nil
	require.ErrorContains(t, Validate(p), "the problem has no boundary data")
	p.Boundary = p.Obstacle
	require.NoError(t, Validate(p))
	p.Velocity[2].Of = func(q problem.Point) float64 { return math.Log(q[2] - 0.5) }
	require.EqualError(t, Validate(p), "velocity: the value NaN is not finite, at (x, y, z) = (0.125, 0.125, 0.125)")
}

// The diffusion is also checked half-way between points, where fluxes are computed.
func TestDiffusionIsCheckedBetweenPoints(t *testing.T) {
	s := parse(t, "dimension: 1\ndomain: [[0, 1]]\nobstacle: -1\ndiffusion: \"abs(x - 0.125)\"\n")
	_, err := s.BuildValid([]int{3})
	require.EqualError(t, err, "some/test.yaml:4: diffusion: the value 0 is not positive, at x = 0.125")
}

func TestDescription(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "description.txt"))
	require.NoError(t, err)
	s, err := Open(nil, "membrane", nil)
	require.NoError(t, err)
	require.Equal(t, string(golden), parse(t, everyKey).Describe().String()+"\n"+s.Describe().String())
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everyKey))
	f.Add([]byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: {npy: row.npy}\n"))
	f.Add([]byte("? [a]\n: &x {b: *x, <<: !!t |\n  q}\n"))
	f.Add([]byte("dimension: 3\ndomain: [[0, 1], [0, 1], [0, 1]]\nobstacle: \"x>0?.5:-y^2\"\nvelocity: [1, 2, z]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("f.yaml", text, arrays)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.yaml") {
				t.Fatalf("the error does not name the file: %v", err)
			}
			return
		}
		_ = s.Describe().String()
		if _, err := s.BuildValid([]int{2}); err != nil {
			return
		}
		back, err := UnmarshalSpec(nil, s.Marshal())
		if err != nil || back.Fingerprint() != s.Fingerprint() {
			t.Fatalf("the problem does not survive marshalling: %v", err)
		}
	})
}

func FuzzFormula(f *testing.F) {
	for _, s := range []string{"x^2+y", "x>0?.5:1", "max(1,2,x)", "let a = 1; a", "[1..9]", "x|abs()", "a.b?.c", "#{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := parseFormula(text, scope{dimension: 2})
		if err == nil {
			g.function(0)(problem.Point{0.5, 0.25})
		}
	})
}

func FuzzUnmarshalSpec(f *testing.F) {
	body := func(b []byte) []byte { return b[:len(b)-sha256.Size] }
	s, err := Parse("p.yaml", []byte(everyKey), arrays)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body(s.Marshal()))
	b, err := Open(nil, "membrane", []string{"k=5"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body(b.Marshal()))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if s, err := UnmarshalSpec(nil, withChecksum(string(b))); err == nil {
			_ = s.Describe().String()
		}
	})
}

const frontText = `dimension: 1
domain: [[0, 1]]
obstacle: "0"
f: "-4"
boundary: "t + 0.3 - x > 0 ? 4*(exp(t + 0.3 - x) - (t + 0.3 - x) - 1) : 0"
exact: "t + 0.3 - x > 0 ? 4*(exp(t + 0.3 - x) - (t + 0.3 - x) - 1) : 0"
time: {end: 0.4, steps: 16, initial: "0.3 - x > 0 ? 4*(exp(0.3 - x) - (0.3 - x) - 1) : 0"}
`

// A problem file with the key time is the built-in front, solved to the same error.
func TestTimeSteps(t *testing.T) {
	s := parse(t, frontText)
	p, err := s.BuildValid([]int{31})
	require.NoError(t, err)
	require.Equal(t, 16, p.Steps())
	require.InDelta(t, 4*(math.Exp(0.7)-1.7), p.Boundary(problem.Point{}), 1e-12, "the functions are those at the end")
	b, err := Open(nil, "front1d", nil)
	require.NoError(t, err)
	q, err := b.BuildValid([]int{31})
	require.NoError(t, err)
	maxError := func(p *problem.Problem) float64 {
		u, err := richardson.SolveSequential(p, problem.Jacobi, 1e-8, 0, 0, 0)
		require.NoError(t, err)
		require.Len(t, u.Steps, 16)
		e, err := verify.EvaluateStep(p, 16, u.U, u.U, nil) // MaxError does not depend on the start
		require.NoError(t, err)
		return e.MaxError
	}
	require.InDelta(t, maxError(q), maxError(p), 1e-8)
	text := s.Describe().String()
	require.Contains(t, text, "u ≥ φ, u_t − Δu ≥ f, complementary")
	require.Contains(t, text, "0 < t ≤ 0.4 in 16 steps of implicit Euler, Δt = 0.025; u = 0.3 - x > 0")
	require.Contains(t, b.Describe().String(), "u_t − κΔu ≥ f")

	arrived, err := UnmarshalSpec(nil, s.Marshal())
	require.NoError(t, err)
	p2, err := arrived.Build([3]int{31, 1, 1})
	require.NoError(t, err)
	require.Equal(t, p.Evolution.At(0.2).Boundary(problem.Point{0.1}),
		p2.Evolution.At(0.2).Boundary(problem.Point{0.1}))
}

// u(0) may be an array, and absent is max(obstacle, 0).
func TestTimeStepsFromAnArray(t *testing.T) {
	p, err := parse(t, "dimension: 1\ndomain: [[0, 4]]\nobstacle: \"t - 1\"\nboundary: \"16\"\ntime: {end: 1, steps: 2, initial: {npy: row.npy}}\n").Build([3]int{3, 1, 1})
	require.NoError(t, err)
	u, err := verify.AtStart(p, nil)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 4, 9}, u)
	p, err = parse(t, "dimension: 1\ndomain: [[0, 4]]\nobstacle: \"x - 1\"\nboundary: \"16\"\ntime: {end: 1, steps: 2}\n").Build([3]int{3, 1, 1})
	require.NoError(t, err)
	u, err = verify.AtStart(p, nil)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2}, u)
}

// A coefficient of the time alone is one number in every step.
func TestCoefficientsOfTime(t *testing.T) {
	p, err := parse(t, "dimension: 1\ndomain: [[0, 1]]\nobstacle: \"-1\"\ndiffusion: \"1 + t\"\nreaction: \"t*x\"\ntime: {end: 1, steps: 4}\n").BuildValid([]int{3})
	require.NoError(t, err)
	q := p.Evolution.At(0.5)
	require.Equal(t, problem.Coefficient{Value: 1.5}, q.Diffusion)
	require.False(t, q.Reaction.Constant())
	require.Equal(t, 0.25, q.Reaction.At(problem.Point{0.5}))
	_, err = parse(t, "dimension: 1\ndomain: [[0, 1]]\nobstacle: \"-1\"\ndiffusion: \"0.6 - t\"\ntime: {end: 1, steps: 4}\n").BuildValid([]int{3})
	require.ErrorContains(t, err, "some/test.yaml:4: diffusion: the value -0.4 is not positive, at x = 0, at t = 1")
}

// Obstacles that do not name t are evaluated once in a run.
func TestSteadyObstacles(t *testing.T) {
	const file = "dimension: 1\ndomain: [[0, 1]]\nf: \"t\"\ntime: {end: 1, steps: 2}\n"
	for text, want := range map[string]bool{
		"obstacle: \"-x\"\n": true, "obstacle: \"-x - t\"\n": false,
		"obstacle: {npy: row.npy, scale: -1}\nboundary: obstacle\n": true,
		"obstacle: \"-1\"\nupper: \"1 + t\"\n":                      false, "obstacle: \"-1\"\nupper: \"1\"\n": true,
	} {
		p, err := parse(t, file+text).BuildValid([]int{3})
		require.NoError(t, err)
		require.Equal(t, want, p.Evolution.SteadyObstacles, text)
	}
}

// An array in Fortran order is the same function as the same array in C order.
func TestFortranOrder(t *testing.T) {
	of := func(order string, values ...byte) problem.Function {
		header := "{'descr': '|i1', 'fortran_order': " + order + ", 'shape': (2, 3), }\n"
		file := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
		file = append(append(file, header...), values...)
		text := "dimension: 2\ndomain: [[0, 2], [0, 1]]\nobstacle: {npy: a.npy}\nboundary: obstacle\n"
		s, err := Parse("a.yaml", []byte(text), func(string) ([]byte, error) { return file, nil })
		require.NoError(t, err)
		p, err := s.BuildValid([]int{3})
		require.NoError(t, err)
		return p.Obstacle
	}
	c, fortran := of("False", 1, 2, 3, 4, 5, 6), of("True", 1, 4, 2, 5, 3, 6)
	for x := 0.0; x <= 2; x += 0.25 {
		for y := 0.0; y <= 1; y += 0.25 {
			require.Equal(t, c(problem.Point{x, y}), fortran(problem.Point{x, y}), "%g, %g", x, y)
		}
	}
}
