package file

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/npy"
	"github.com/p2pdc/p2pdc/internal/yamldoc"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// document is a parsed problem file: the problem without its grid.
type document struct {
	yamldoc.Source
	dimension int
	lo, hi    problem.Point

	obstacle, upper, boundary, f, exact field
	diffusion, reaction                 field
	velocity                            [3]field
	upwind                              bool

	end     float64 // end time, 0 if stationary
	steps   int
	initial field // u at t = 0

	option *option.Option // contract of the kind american-option; if nil, the fields above are the problem
}

func (d *document) evolves() bool { return d.steps > 0 }

// field is one function of the problem: a formula, an array, a copy of the obstacle, or none.
type field struct {
	yamldoc.Source
	text           string // as the user wrote it
	formula        *formula
	array          problem.Function
	copiesObstacle bool
}

func (f field) given() bool { return f.formula != nil || f.array != nil || f.copiesObstacle }

// attach returns the bytes of an array named in the problem file. It may call check first, so that a large file is not
// read in vain.
type attach func(name string, check headCheck) ([]byte, error)

// headCheck returns an error for an array that is not right by the first npy.HeaderBytes of its file and the size of that.
type headCheck func(head []byte, size int64) error

var documentKeys = []string{
	"dimension", "domain", "obstacle", "f", "boundary", "upper",
	"diffusion", "velocity", "upwind", "reaction", "exact", "time", "kind",
}

func parseDocument(file string, text []byte, open attach) (*document, error) {
	root, err := yamldoc.Parse(file, "problem file", text, MaxTextBytes)
	if err != nil {
		return nil, err
	}
	switch kind, err := kindOfProblem(file, root); {
	case err != nil:
		return nil, err
	case kind == kindOption:
		return parseOption(file, root)
	}
	d := &document{Source: yamldoc.Source{File: file}}
	entries, err := yamldoc.Mapping(d.Source, root, documentKeys...)
	if err != nil {
		return nil, err
	}
	get := func(key string) yamldoc.Entry { return entries[slices.Index(documentKeys, key)] }
	for _, key := range documentKeys[:2] {
		if get(key).Null() {
			return nil, d.Errorf("the key %s is missing", key)
		}
	}
	if d.dimension, err = get("dimension").Integer(); err != nil {
		return nil, err
	}
	if d.dimension < 1 || d.dimension > 3 {
		return nil, get("dimension").Errorf("%d: it must be 1, 2 or 3", d.dimension)
	}
	if err := d.readDomain(get("domain")); err != nil {
		return nil, err
	}
	if err := d.readFields(get, scope{d.dimension, !get("time").Null()}, open); err != nil {
		return nil, err
	}
	return d, d.readTime(get("time"), open)
}

func (d *document) readDomain(e yamldoc.Entry) error {
	axes, err := e.Sequence(d.dimension, "intervals [low, high], one per axis")
	if err != nil {
		return err
	}
	for a, interval := range axes {
		ends, err := readNumbers(interval, 2, "numbers: the low and the high end of the axis")
		if err != nil {
			return err
		}
		d.lo[a], d.hi[a] = ends[0], ends[1]
		if length := d.hi[a] - d.lo[a]; !(length > 0) || !kernel.Finite(length) {
			return interval.Errorf("axis %c runs from %g to %g; it must run upwards", "xyz"[a], d.lo[a], d.hi[a])
		}
	}
	return nil
}

// readFields reads the functions of the problem. Formulas may use the names in scope in.
func (d *document) readFields(get func(string) yamldoc.Entry, in scope, open attach) error {
	if get("obstacle").Null() && get("upper").Null() {
		return d.Errorf("there is no obstacle: give obstacle, upper or both")
	}
	for _, r := range []struct {
		key       string
		to        *field
		otherwise string // formula of an absent key, or ""
		arrays    bool
	}{
		{"obstacle", &d.obstacle, "", true},
		{"upper", &d.upper, "", true},
		{"f", &d.f, "0", false},
		{"boundary", &d.boundary, "0", false},
		{"exact", &d.exact, "", false},
		{"diffusion", &d.diffusion, "1", false},
		{"reaction", &d.reaction, "0", false},
	} {
		e := get(r.key)
		_, isMapping := e.Value.(*ast.MappingNode)
		text, _ := e.Text()
		var err error
		switch {
		case isMapping && r.arrays:
			*r.to, err = d.readArray(e, open)
		case e.Null() && r.otherwise == "":
			*r.to = field{Source: e.Source}
		case e.Null():
			*r.to, err = defaultField(e.Source, r.otherwise)
		case r.key == "boundary" && text == "obstacle":
			if !d.obstacle.given() {
				err = e.Errorf("it refers to the obstacle, but the problem has none")
			}
			*r.to = field{Source: e.Source, text: "the values of the obstacle", copiesObstacle: true}
		default:
			*r.to, err = readFormula(e, in)
		}
		if err != nil {
			return err
		}
	}
	if err := d.readVelocity(get("velocity"), get("upwind"), in); err != nil {
		return err
	}
	if k := d.diffusion.formula; k.constant && k.value <= 0 {
		return d.diffusion.Errorf("%g: the diffusion coefficient must be positive", k.value)
	}
	return nil
}

func readFormula(e yamldoc.Entry, in scope) (field, error) {
	f, text, err := readExpression(e, in)
	return field{Source: e.Source, text: text, formula: &f}, err
}

// defaultField returns the field of an absent key.
func defaultField(at yamldoc.Source, text string) (field, error) {
	f, err := parseFormula(text, scope{})
	return field{Source: at, text: text, formula: &f}, err
}

func (d *document) readVelocity(e, upwind yamldoc.Entry, in scope) error {
	d.upwind = true
	if !upwind.Null() {
		var err error
		if d.upwind, err = upwind.Bool(); err != nil {
			return err
		}
	}
	for a := range d.velocity {
		d.velocity[a], _ = defaultField(e.Source, "0")
	}
	if e.Null() {
		return nil
	}
	parts, err := e.Sequence(d.dimension, "components, one per axis")
	for a := 0; a < len(parts) && err == nil; a++ {
		d.velocity[a], err = readFormula(parts[a], in)
	}
	return err
}

// readArray reads an array {npy: FILE, scale: NUMBER, flip: AXIS or [AXES]}.
func (d *document) readArray(e yamldoc.Entry, open attach) (field, error) {
	keys, err := yamldoc.Mapping(e.Source, e.Value, "npy", "scale", "flip")
	if err != nil {
		return field{}, err
	}
	name, ok := keys[0].Text()
	if !ok || name == "" {
		return field{}, keys[0].Errorf("there should be the name of a .npy file, not %s", yamldoc.Kind(keys[0].Value))
	}
	scale := 1.0
	if !keys[1].Null() {
		if scale, err = readNumber(keys[1]); err != nil {
			return field{}, err
		}
	}
	flip, err := d.readFlip(keys[2])
	if err != nil {
		return field{}, err
	}
	raster := &problems.Raster{Lo: d.lo, Hi: d.hi, Size: [3]int{1, 1, 1}, Flip: flip}
	check := func(head []byte, size int64) error {
		array, err := npy.Describe(head, size)
		if err == nil {
			err = fit(raster, array.Shape, d.dimension)
		}
		return err
	}
	data, err := open(name, check)
	if err == nil {
		err = check(data, int64(len(data)))
	}
	var array npy.Array
	if err == nil {
		array, err = npy.Decode(data)
	}
	if err != nil {
		return field{}, keys[0].Errorf("%s: %v", name, err)
	}
	raster.Node = func(i int) float64 { return float64(array.At(i) * scale) }
	for i := range array.Len() {
		if v := raster.Node(i); !kernel.Finite(v) {
			return field{}, keys[0].Errorf("%s: entry %v is %g", name, indices(array.Shape, i), v)
		}
	}
	text := fmt.Sprintf("%s, %s of %s", name, npy.ShapeString(array.Shape), array.Type)
	if scale != 1 {
		text += fmt.Sprintf(", times %g", scale)
	}
	for a, flipped := range flip {
		if flipped {
			text += fmt.Sprintf(", first entry at the largest %c", "xyz"[a])
		}
	}
	values, err := raster.Function()
	if err != nil {
		return field{}, e.Errorf("%v", err)
	}
	return field{Source: e.Source, text: text, array: values}, nil
}

// fit sets the size of the raster to the shape of the array, which has the slowest axis first.
func fit(r *problems.Raster, shape []int, dimension int) error {
	if len(shape) != dimension {
		return fmt.Errorf("the array has the shape %s, but the problem is %d-D", npy.ShapeString(shape), dimension)
	}
	for i, n := range shape {
		if n < 2 {
			return fmt.Errorf("the array has the shape %s: it needs at least 2 entries along every axis, "+
				"the first and the last on the boundary", npy.ShapeString(shape))
		}
		r.Size[dimension-1-i] = n
	}
	return nil
}

func (d *document) readFlip(e yamldoc.Entry) (flip [3]bool, err error) {
	names := []yamldoc.Entry{e}
	if list, ok := e.Value.(*ast.SequenceNode); ok {
		if names, err = e.Sequence(len(list.Values), "axes"); err != nil {
			return flip, err
		}
	}
	for _, n := range names {
		if n.Null() {
			continue
		}
		name, _ := n.Text()
		axis := slices.Index([]string{"x", "y", "z"}[:d.dimension], name)
		if axis < 0 {
			return flip, n.Errorf("there should be an axis of the problem or a list of axes, not %s",
				yamldoc.Kind(n.Value))
		}
		flip[axis] = true
	}
	return flip, nil
}

func indices(shape []int, i int) []int {
	at := make([]int, len(shape))
	for a := len(shape) - 1; a >= 0; a-- {
		at[a], i = i%shape[a], i/shape[a]
	}
	return at
}

// readTime reads the evolution {end: T, steps: N, initial: FORMULA or ARRAY}.
func (d *document) readTime(e yamldoc.Entry, open attach) error {
	d.initial = field{Source: e.Source}
	if e.Null() {
		return nil
	}
	keys, err := yamldoc.Mapping(e.Source, e.Value, "end", "steps", "initial")
	if err != nil {
		return err
	}
	end, err := readNumber(keys[0])
	if err != nil {
		return err
	}
	if end <= 0 {
		return keys[0].Errorf("%g: the end time must be positive", end)
	}
	steps, err := keys[1].Integer()
	if err != nil {
		return err
	}
	switch {
	case steps < 1:
		return keys[1].Errorf("%d: there must be at least 1 step", steps)
	case steps > problem.MaxSteps:
		return keys[1].Errorf("%d: there may be at most %d steps", steps, problem.MaxSteps)
	}
	d.end, d.steps = end, steps
	if _, isMapping := keys[2].Value.(*ast.MappingNode); isMapping {
		d.initial, err = d.readArray(keys[2], open)
	} else if !keys[2].Null() { // otherwise u is max(obstacle, 0) at t = 0
		d.initial, err = readFormula(keys[2], scope{d.dimension, true})
	}
	return err
}

// readExpression reads a number or a formula. It also returns the text of the expression.
func readExpression(e yamldoc.Entry, in scope) (formula, string, error) {
	switch v := e.Value.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		written := v.GetToken().Value
		value, err := strconv.ParseFloat(strings.ReplaceAll(written, "_", ""), 64)
		if i, ok := v.(*ast.IntegerNode); ok && err != nil { // 0x10, 0o17
			value, err = strconv.ParseFloat(fmt.Sprint(i.Value), 64)
		}
		if err != nil || !kernel.Finite(value) {
			return formula{}, "", e.Errorf("%s is not a finite number", written)
		}
		return formula{node: constant(value)}, written, nil
	case *ast.InfinityNode, *ast.NanNode:
		return formula{}, "", e.Errorf("%s is not a finite number", v.GetToken().Value)
	}
	written, ok := e.Text()
	if !ok {
		return formula{}, "", e.Errorf("there should be a number or a formula, not %s", yamldoc.Kind(e.Value))
	}
	written = strings.TrimSpace(written)
	f, err := parseFormula(written, in)
	if err != nil {
		if p, ok := errors.AsType[*positionError](err); ok {
			return formula{}, "", e.Errorf("%s, at character %d of %q", p.reason, p.at+1, yamldoc.Shorten(written))
		}
		return formula{}, "", e.Errorf("%s", err)
	}
	return f, written, nil
}

// readNumbers reads a list of n numbers.
func readNumbers(e yamldoc.Entry, n int, of string) ([]float64, error) {
	items, err := e.Sequence(n, of)
	out := make([]float64, len(items))
	for i := 0; i < len(items) && err == nil; i++ {
		out[i], err = readNumber(items[i])
	}
	return out, err
}

// readNumber reads a number or a formula without coordinates, such as 2*pi.
func readNumber(e yamldoc.Entry) (float64, error) {
	f, written, err := readExpression(e, scope{})
	if err != nil {
		return 0, err
	}
	if !f.constant {
		return 0, e.Errorf("there should be a number, not %q", yamldoc.Shorten(written))
	}
	return f.value, nil
}
