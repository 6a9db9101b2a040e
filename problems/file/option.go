package file

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/internal/yamldoc"
	"github.com/p2pdc/p2pdc/problems/option"
)

// The kinds of problem files, the values of the key kind. Without the key a file is an obstacle problem.
const (
	kindObstacle = "obstacle"
	kindOption   = "american-option"
)

// kindOfProblem returns the value of the key kind. Other keys are checked by the reader of that kind.
func kindOfProblem(file string, root ast.Node) (string, error) {
	m, ok := root.(*ast.MappingNode)
	if !ok {
		return kindObstacle, nil
	}
	for _, v := range m.Values {
		if yamldoc.KeyName(v.Key) != "kind" {
			continue
		}
		at := yamldoc.Source{File: file, Key: "kind", Line: yamldoc.LineOf(v.Key, 0)}
		e := yamldoc.Entry{Source: at, Value: v.Value}
		known := []string{kindObstacle, kindOption}
		word, ok := e.Text()
		if !ok || !slices.Contains(known, word) {
			return "", e.Errorf("there should be %s, not %s%s",
				strings.Join(known, " or "), yamldoc.Kind(v.Value), spelling.Suggest(word, known))
		}
		return word, nil
	}
	return kindObstacle, nil
}

var optionKeys = []string{
	"kind", "payoff", "basket", "strike", "rate", "maturity", "steps", "assets", "correlation", "weights", "width",
}

// optionDefaultSteps is the default number of time steps.
const optionDefaultSteps = 100

// optionReader reads a problem file of the kind american-option.
type optionReader struct {
	at      yamldoc.Source
	entries []yamldoc.Entry
	option  option.Option
	assets  [][]yamldoc.Entry // price, volatility and dividend of each asset
	err     error             // first error of word and number
}

// fail records the first error.
func (r *optionReader) fail(err error) {
	r.err = cmp.Or(r.err, err)
}

// perpetualWord is the value of maturity of a perpetual option.
const perpetualWord = "perpetual"

func assetKeys() []string { return []string{"price", "volatility", "dividend"} }

func parseOption(file string, root ast.Node) (*document, error) {
	r := &optionReader{at: yamldoc.Source{File: file}}
	var err error
	if r.entries, err = yamldoc.Mapping(r.at, root, optionKeys...); err != nil {
		return nil, err
	}
	for _, read := range []func() error{r.readContract, r.readTime, r.readAssets, r.readCorrelation, r.readWeights} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if err := r.option.Check(); err != nil {
		return nil, r.locate(err)
	}
	return &document{Source: r.at, dimension: len(r.option.Assets), option: &r.option}, nil
}

func (r *optionReader) get(key string) yamldoc.Entry { return r.entries[slices.Index(optionKeys, key)] }

func (r *optionReader) readContract() error {
	r.option.Payoff = option.Payoff(r.word("payoff", option.Payoffs(), false))
	r.option.Basket = option.Basket(r.word("basket", option.Baskets(), true))
	r.option.Strike = r.number("strike")
	r.option.Rate = r.number("rate")
	if !r.get("width").Null() {
		if r.option.Width = r.number("width"); r.option.Width == 0 {
			r.fail(r.get("width").Errorf("0: want a positive number of standard deviations"))
		}
	}
	return r.err
}

// readTime reads maturity and steps.
func (r *optionReader) readTime() error {
	maturity, steps := r.get("maturity"), r.get("steps")
	if word, ok := maturity.Text(); ok && word == perpetualWord {
		r.option.Perpetual = true
		if !steps.Null() {
			return steps.Errorf("a perpetual option takes no time steps; leave the key out")
		}
		return nil
	}
	r.option.Maturity = r.number("maturity")
	r.option.Steps = optionDefaultSteps
	if !steps.Null() {
		var err error
		r.option.Steps, err = steps.Integer()
		r.fail(err)
	}
	return r.err
}

func (r *optionReader) readAssets() error {
	e := r.get("assets")
	if e.Null() {
		return r.missing("assets")
	}
	list, ok := e.Value.(*ast.SequenceNode)
	if !ok {
		return e.Errorf("there should be a list of one to %d assets {price: …, volatility: …}, not %s",
			option.MaxAssets, yamldoc.Kind(e.Value))
	}
	if n := len(list.Values); n < 1 || n > option.MaxAssets {
		return e.Errorf("%d of them; there may be 1 to %d", n, option.MaxAssets)
	}
	items, err := e.Sequence(len(list.Values), "assets")
	if err != nil {
		return err
	}
	for i, item := range items {
		at := item.Source
		at.Key = fmt.Sprintf("assets[%d]", i+1)
		keys, err := yamldoc.Mapping(at, item.Value, assetKeys()...)
		if err != nil {
			return err
		}
		r.assets = append(r.assets, keys)
		var v [3]float64
		for j, k := range keys {
			if k.Null() {
				if j == 2 {
					continue // no dividend
				}
				return k.Errorf("it is missing")
			}
			if v[j], err = readNumber(k); err != nil {
				return err
			}
		}
		r.option.Assets = append(r.option.Assets, option.Asset{Price: v[0], Volatility: v[1], Dividend: v[2]})
	}
	if len(items) > 1 && r.get("basket").Null() {
		return r.missing("basket")
	}
	return nil
}

// readCorrelation reads one correlation for all pairs or the rows of the matrix.
func (r *optionReader) readCorrelation() error {
	e, d := r.get("correlation"), len(r.option.Assets)
	r.option.Correlation = option.Uncorrelated()
	if e.Null() {
		return nil
	}
	if _, ok := e.Value.(*ast.SequenceNode); !ok {
		rho, err := readNumber(e)
		r.option.Correlation = option.Correlated(rho)
		return err
	}
	rows, err := e.Sequence(d, "rows, one per asset (or one number for all pairs)")
	if err != nil {
		return err
	}
	for i, row := range rows {
		numbers, err := readNumbers(row, d, "correlations, one per asset")
		if err != nil {
			return err
		}
		copy(r.option.Correlation[i][:], numbers)
	}
	return nil
}

func (r *optionReader) readWeights() error {
	e := r.get("weights")
	if e.Null() {
		return nil
	}
	if b := r.option.Basket; b != option.Arithmetic && b != option.Geometric {
		return e.Errorf("only an arithmetic or geometric basket has weights")
	}
	var err error
	r.option.Weights, err = readNumbers(e, len(r.option.Assets), "weights, one per asset")
	return err
}

// word returns the index of the key's value in the list of known words, or 0 if the key is absent and optional.
func (r *optionReader) word(key string, known []string, optional bool) int {
	e := r.get(key)
	if e.Null() {
		if !optional {
			r.fail(r.missing(key))
		}
		return 0
	}
	text, _ := e.Text()
	i := slices.Index(known, text)
	if i < 0 {
		r.fail(e.Errorf("there should be %s, not %s%s",
			strings.Join(known, ", "), yamldoc.Kind(e.Value), spelling.Suggest(text, known)))
	}
	return i
}

func (r *optionReader) number(key string) float64 {
	e := r.get(key)
	if e.Null() {
		r.fail(r.missing(key))
		return 0
	}
	v, err := readNumber(e)
	r.fail(err)
	return v
}

func (r *optionReader) missing(key string) error {
	return r.at.Errorf("the key %s is missing", key)
}

// locate adds file and line to an error of the option's check.
func (r *optionReader) locate(err error) error {
	e, ok := errors.AsType[*option.InputError](err)
	if !ok {
		return err
	}
	at := r.get(e.Key)
	if e.Key == "assets" && e.Item >= 0 && e.Item < len(r.assets) {
		at = r.assets[e.Item][max(slices.Index(assetKeys(), e.Field), 0)]
	} else if list, ok := at.Value.(*ast.SequenceNode); ok && e.Item >= 0 && e.Item < len(list.Values) {
		at.Key = fmt.Sprintf("%s[%d]", e.Key, e.Item+1)
		at.Line = yamldoc.LineOf(list.Values[e.Item], at.Line)
	}
	return at.Errorf("%s", e.Reason)
}

// describeOption adds the description of an option.
func describeOption(d *Description, o *option.Option) {
	d.Equation = "V ≥ payoff, V_τ − ½ΔV − m·∇V + r·V ≥ 0, complementary; y = L⁻¹·log(S/S₀), L·Lᵀ the covariance"
	add := func(key, format string, args ...any) {
		d.Entries = append(d.Entries, Entry{key, fmt.Sprintf(format, args...)})
	}
	if o.Perpetual {
		d.Equation = strings.Replace(d.Equation, "V_τ − ½", "−½", 1)
	}
	if p, err := o.Problem(d.Name, smallest(len(o.Assets))); err == nil {
		d.Domain = nil
		d.setDomain(p.Lo, p.Hi)
		d.HasExact = p.Exact != nil
	}
	if d.Builtin {
		return
	}
	add("contract", "%s", o)
	for i, a := range o.Assets {
		low, high := o.Reach(i)
		add("asset", "today %g, volatility %g, dividend %g; the domain extends from %.4g to %.4g",
			a.Price, a.Volatility, a.Dividend, low, high)
	}
	for i := 1; i < len(o.Assets); i++ {
		add("correlation", "of asset %d with those before it: %v", i+1, o.Correlation[i][:i])
	}
	if !o.Perpetual {
		add("time", "%d steps of implicit Euler from maturity, Δt = %g", o.Steps, o.Maturity/float64(o.Steps))
	}
}
