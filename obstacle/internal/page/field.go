package page

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Wanted is the part of a solution that a page shows: a plane, or a sample of the whole grid.
type Wanted struct {
	Run   int
	Whole bool
	Axis  int // of a plane: 0, 1 or 2
	Plane int // its index, from 0
}

// Values are values of a solution at every stride-th point of a box.
type Values struct {
	N       [3]int    `json:"n"`      // points of the grid
	First   [3]int    `json:"first"`  // index of the first point
	Stride  [3]int    `json:"stride"` // in points
	Size    [3]int    `json:"size"`   // values along each axis
	Elapsed float64   `json:"elapsed"`
	U       []float64 `json:"-"` // [z][y][x]; NaN: unknown
	Lower   []float64 `json:"-"` // the obstacle below; nil: there is none
	Upper   []float64 `json:"-"`
}

// MarshalJSON writes the values as little-endian float32 in base64: u, how far u is from the nearest obstacle, and 1
// where it touches the lower one, 2 where it touches the upper one.
func (v *Values) MarshalJSON() ([]byte, error) {
	u, gap, contact := make([]byte, 4*len(v.U)), make([]byte, 4*len(v.U)), make([]byte, len(v.U))
	for i, x := range v.U {
		binary.LittleEndian.PutUint32(u[4*i:], math.Float32bits(float32(x)))
		g := math.Inf(1)
		if v.Lower != nil {
			if g = x - v.Lower[i]; g <= 0 {
				contact[i] = 1
			}
		}
		if v.Upper != nil {
			if h := v.Upper[i] - x; h < g {
				if g = h; g <= 0 {
					contact[i] = 2
				}
			}
		}
		binary.LittleEndian.PutUint32(gap[4*i:], math.Float32bits(float32(g)))
	}
	type plain Values
	return json.Marshal(struct {
		*plain
		U       string `json:"u"`
		Gap     string `json:"gap"`
		Contact string `json:"contact"`
	}{(*plain)(v), base64.StdEncoding.EncodeToString(u), base64.StdEncoding.EncodeToString(gap), base64.StdEncoding.EncodeToString(contact)})
}

// Field supplies values of a solution. It asks the peers for them only while somebody looks.
type Field interface {
	// Values returns the newest values, at most some seconds old. It waits for them until ctx ends.
	Values(ctx context.Context, w Wanted) (*Values, error)
}

// ErrNoValues is the error of a Field that has no values, and will not have any.
var ErrNoValues = errors.New("no values of this run are known")

// fieldTime bounds the wait for values of the peers.
const fieldTime = 8 * time.Second

type fieldHandler struct{ field Field }

func (h fieldHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.field == nil {
		http.Error(w, ErrNoValues.Error(), http.StatusNotFound)
		return
	}
	number := func(name string) int {
		n, err := strconv.Atoi(r.URL.Query().Get(name))
		if err != nil {
			return -1
		}
		return n
	}
	want := Wanted{Run: number("run"), Whole: r.URL.Query().Has("whole"), Axis: number("axis"), Plane: number("plane")}
	if want.Whole {
		want.Axis, want.Plane = 0, 0
	}
	if want.Run < 0 || want.Axis < 0 || want.Axis > 2 || want.Plane < 0 {
		http.Error(w, "want ?run=R&axis=0..2&plane=K, or ?run=R&whole", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), fieldTime)
	defer cancel()
	v, err := h.field.Values(ctx, want)
	switch {
	case errors.Is(err, ErrNoValues):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, "the peers have sent no values yet", http.StatusServiceUnavailable)
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	serve(w, "application/json", body)
}
