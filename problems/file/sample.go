package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/option"
)

// Kinds returns the kinds of Sample.
func Kinds() []string { return []string{"membrane", "torsion", "moving", "option"} }

// Sample returns the text of a commented problem file of that kind, which solves as it is. dimension 0 selects the
// usual one.
func Sample(kind string, dimension int) (string, error) {
	if dimension < 0 || dimension > 3 {
		return "", fmt.Errorf("dimension %d: want 1, 2 or 3", dimension)
	}
	if dimension == 0 {
		if dimension = 2; kind == "option" {
			dimension = 1
		}
	}
	switch kind {
	case "membrane":
		return membraneSample(dimension, 0.5, 4).String(), nil
	case "torsion":
		return torsionSample(dimension, 5).String(), nil
	case "moving":
		return movingSample(dimension).String(), nil
	case "option":
		o := &option.Option{Strike: 100, Rate: 0.05, Maturity: 1, Steps: 50, Basket: option.Minimum,
			Correlation: option.Correlated(0.5)}
		for range dimension {
			o.Assets = append(o.Assets, option.Asset{Price: 100, Volatility: 0.2})
		}
		return optionSample(o), nil
	}
	return "", fmt.Errorf("no kind %q; there are %s", kind, strings.Join(Kinds(), ", "))
}

// Written returns the names of the built-in problems that SampleOf can write.
func Written() []string {
	var names []string
	for _, b := range problems.All() {
		if _, err := SampleOf(b); err == nil {
			names = append(names, b.Name)
		}
	}
	return names
}

// SampleOf returns the text of a problem file with the values of a built-in problem. It is an error if the problem has
// no formulas.
func SampleOf(b problems.Builtin) (string, error) {
	if o := b.Option(); o != nil {
		return optionSample(o), nil
	}
	v, d := map[string]float64{}, b.Dimension
	for _, p := range b.Parameters {
		v[p.Name] = p.Value
	}
	switch b.Name {
	case "membrane":
		return membraneSample(d, v["c0"], v["k"]).String(), nil
	case "torsion", "torsion1d":
		return torsionSample(d, v["c"]).String(), nil
	case "quartic", "quartic2d":
		return quarticSample(d, v["r0"]).String(), nil
	case "bearing", "bearing1d":
		return bearingSample(d, v["eccentricity"], v["b"]).String(), nil
	}
	return "", fmt.Errorf("problem %s cannot be written as a file: it has no formulas", b.Name)
}

// sample is the contents of a problem file.
type sample struct {
	about     []string // lines of comment
	dimension int
	domain    [2]string // of every axis, unless axes is given
	axes      [][2]string
	keys      []sampleKey
}

type sampleKey struct{ key, value, about string }

var axisNames = []string{"x", "y", "z"}

// squaresOf returns the formula of the squared distance from the point all of whose coordinates are centre.
func squaresOf(d int, centre string) string {
	var terms []string
	for _, x := range axisNames[:d] {
		if centre != "0" {
			x = "(" + x + " - " + centre + ")"
		}
		terms = append(terms, x+"^2")
	}
	return strings.Join(terms, " + ")
}

func membraneSample(d int, c0, k float64) sample {
	return sample{
		about: []string{
			"A membrane over a paraboloid, held at 0 on the boundary: find u with u ≥ φ and",
			"−Δu ≥ f, one of them an equality at every point. φ is the obstacle below.",
		},
		dimension: d, domain: [2]string{"0", "1"},
		keys: []sampleKey{
			{"obstacle", fmt.Sprintf(`"%g - %g*(%s)"`, c0, k, squaresOf(d, "0.5")),
				"φ: a formula, or an array: {npy: FILE.npy}"},
			{"boundary", `"0"`, "u on the boundary, at least φ there: a formula, or obstacle"},
			{"f", `"0"`, "the load"},
		},
	}
}

func torsionSample(d int, c float64) sample {
	var terms []string
	for _, x := range axisNames[:d] {
		terms = append(terms, x, "1 - "+x)
	}
	distance := "min(" + strings.Join(terms, ", ") + ")"
	return sample{
		about: []string{
			"Elastic-plastic torsion of a bar: −Δu = c where |u| is below the distance from the",
			"boundary. Where it is equal to the distance, the bar is plastic.",
		},
		dimension: d, domain: [2]string{"0", "1"},
		keys: []sampleKey{
			{"obstacle", `"-` + distance + `"`, "u is at least this"},
			{"upper", `"` + distance + `"`, "and at most this"},
			{"f", fmt.Sprintf(`"%g"`, c), "c, the angle of twist per length in units of the shear modulus"},
			{"boundary", `"0"`, "u on the boundary"},
		},
	}
}

func quarticSample(d int, r0 float64) sample {
	r2, r02 := "("+squaresOf(d, "0")+")", fmt.Sprintf("%g^2", r0)
	exact := fmt.Sprintf(`"max(%s - %s, 0)^2"`, r2, r02)
	return sample{
		about: []string{
			"A flat obstacle with the source for which u = max(r² − r0², 0)², to study how fast the",
			"error falls: obstacle convergence FILE.",
		},
		dimension: d, domain: [2]string{"-1", "1"},
		keys: []sampleKey{
			{"obstacle", `"0"`, "φ"},
			{"f", fmt.Sprintf(`"%s > %s ? -4*(2*%s + %d*(%s - %s)) : -8*%s*(1 - (%s - %s))"`,
				r2, r02, r2, d, r2, r02, r02, r2, r02), "the source"},
			{"boundary", exact, "the exact solution on the boundary"},
			{"exact", exact, "then max_error is reported"},
		},
	}
}

func bearingSample(d int, e, b float64) sample {
	return sample{
		about: []string{
			"Pressure in a journal bearing: −div((1 + ε cos x)³ ∇u) ≥ ε sin x and u ≥ 0. The film",
			"cavitates where u = 0.",
		},
		dimension: d, axes: [][2]string{{"0", "2*pi"}, {"0", fmt.Sprintf("%g", 2*b)}}[:d],
		keys: []sampleKey{
			{"obstacle", `"0"`, "the vapour pressure"},
			{"diffusion", fmt.Sprintf(`"(1 + %g*cos(x))^3"`, e), "κ, the third power of the film's thickness"},
			{"f", fmt.Sprintf(`"%g*sin(x)"`, e), "what the motion of the shaft contributes"},
			{"boundary", `"0"`, "u on the boundary"},
		},
	}
}

func movingSample(d int) sample {
	terms := strings.Replace(squaresOf(d, "0.5"), "x - 0.5", "x - 0.3 - 0.4*t", 1)
	return sample{
		about: []string{
			"A membrane over an obstacle that moves in time: u ≥ φ(t) and u_t − Δu ≥ f, one of them",
			"an equality at every point, from t = 0 to the end in steps of implicit Euler.",
		},
		dimension: d, domain: [2]string{"0", "1"},
		keys: []sampleKey{
			{"obstacle", fmt.Sprintf(`"0.2 - 8*(%s)"`, terms), "φ(t): formulas may use t"},
			{"boundary", `"max(0, 0.2 - 8*(` + terms + `))"`, "u on the boundary, at least φ there"},
			{"f", `"0"`, "the load"},
			{"time", `{end: 1, steps: 10, initial: "0"}`, "end, number of steps, u at t = 0 (raised to φ)"},
		},
	}
}

// defaults are the keys that a file may leave out, with the values that they then have.
func defaults(d int) []sampleKey {
	return []sampleKey{
		{"upper", "null", "ψ, an upper obstacle: u ≤ ψ"},
		{"f", `"0"`, "source"},
		{"boundary", `"0"`, "u on the boundary"},
		{"diffusion", `"1"`, "κ > 0 in A = −div(κ∇u) + b·∇u + c·u"},
		{"velocity", "[" + strings.Join(slices.Repeat([]string{"0"}, d), ", ") + "]", "b, one number or formula per axis"},
		{"reaction", `"0"`, "c; below 0 only while A is an M-matrix"},
		{"exact", "null", "the exact solution, if known; then max_error is reported"},
		{"time", "null", `or {end: 1, steps: 10, initial: "0"}; then formulas may use t`},
	}
}

// String returns the text of the file.
func (s sample) String() string {
	var b strings.Builder
	for _, l := range s.about {
		fmt.Fprintln(&b, "# "+l)
	}
	fmt.Fprint(&b, "#\n# Formulas may use x, y, z, pi, sqrt, exp, log, sin, cos, tan, atan2, abs, min, max,\n"+
		"# floor, ^ and a ? b : c. docs/problems.md explains every key.\n\n")
	axes := s.axes
	if axes == nil {
		axes = slices.Repeat([][2]string{s.domain}, s.dimension)
	}
	var domain []string
	for _, ends := range axes {
		domain = append(domain, "["+ends[0]+", "+ends[1]+"]")
	}
	all := append([]sampleKey{
		{"dimension", fmt.Sprint(s.dimension), "1, 2 or 3"},
		{"domain", "[" + strings.Join(domain, ", ") + "]", "low and high end of each axis"},
	}, s.keys...)
	for _, k := range all {
		fmt.Fprintf(&b, "# %s\n%s: %s\n", k.about, k.key, k.value)
	}
	fmt.Fprint(&b, "\n# These keys may be left out; their values are then:\n")
	for _, k := range defaults(s.dimension) {
		if !slices.ContainsFunc(all, func(g sampleKey) bool { return g.key == k.key }) {
			fmt.Fprintf(&b, "#%s: %s   # %s\n", k.key, k.value, k.about)
		}
	}
	return b.String()
}

// optionSample returns the text of a file of the kind american-option.
func optionSample(o *option.Option) string {
	var b strings.Builder
	key := func(about, format string, values ...any) {
		fmt.Fprintf(&b, "# %s\n"+format+"\n", append([]any{about}, values...)...)
	}
	fmt.Fprintf(&b, "# %s, by Black and Scholes. Prices are in one\n"+
		"# unit of money, times in years. docs/problems.md explains every key.\n\n", o)
	key("a contract on one to three assets", "kind: american-option")
	key("put: pays max(strike − basket, 0); call: max(basket − strike, 0)", "payoff: %s", o.Payoff)
	if len(o.Assets) > 1 {
		key("of the assets' prices: min, max, arithmetic or geometric", "basket: %s", o.Basket)
	}
	key("the strike price", "strike: %v", o.Strike)
	key("interest of a year, continuous", "rate: %v", o.Rate)
	if o.Perpetual {
		key("years, or perpetual", "maturity: perpetual")
	} else {
		key("years, or perpetual", "maturity: %v", o.Maturity)
		key("time steps of implicit Euler", "steps: %d", o.Steps)
	}
	fmt.Fprint(&b, "# of each asset: today's price, volatility and dividend of a year\nassets:\n")
	for _, a := range o.Assets {
		fmt.Fprintf(&b, "  - {price: %v, volatility: %v, dividend: %v}\n", a.Price, a.Volatility, a.Dividend)
	}
	if len(o.Assets) > 1 {
		key("of every pair of assets, or the rows of the matrix", "correlation: %v", o.Correlation[0][1])
	}
	if o.Width != 0 {
		key("half-width of the domain in standard deviations", "width: %v", o.Width)
	}
	return b.String()
}
