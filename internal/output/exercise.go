package output

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// ExerciseExtension is the extension of files with the exercise boundary of an American option.
const ExerciseExtension = ".exercise.csv"

// IsExercise reports whether path names an exercise boundary.
func IsExercise(path string) bool { return strings.HasSuffix(strings.ToLower(path), ExerciseExtension) }

// Exercise is a point of the exercise boundary: at the time to maturity Time, the option is exercised from
// Factor times today's prices on. Factor is NaN if it is not exercised at any multiple of these prices.
type Exercise struct {
	Time   float64 // to maturity
	Factor float64
}

// WriteExercise writes a line time,factor,S1,… for each row: the time to maturity, the factor of today's prices
// (spot) at which exercise begins, and the prices there. Factor and prices are empty if Factor is NaN.
func WriteExercise(path string, spot []float64, rows []Exercise) error {
	if err := writable(path); err != nil {
		return err
	}
	return Replace(path, func(w io.Writer) error { return writeExercise(w, spot, rows) })
}

func writeExercise(w io.Writer, spot []float64, rows []Exercise) error {
	line := []byte("time,factor")
	for i := range spot {
		line = fmt.Appendf(line, ",S%d", i+1)
	}
	for _, r := range rows {
		line = strconv.AppendFloat(append(line, '\n'), r.Time, 'g', -1, 64)
		line = appendUnlessNaN(append(line, ','), r.Factor)
		for _, s := range spot {
			line = appendUnlessNaN(append(line, ','), s*r.Factor)
		}
		if len(line) >= 1<<15 {
			if _, err := w.Write(line); err != nil {
				return err
			}
			line = line[:0]
		}
	}
	_, err := w.Write(append(line, '\n'))
	return err
}

func appendUnlessNaN(line []byte, v float64) []byte {
	if math.IsNaN(v) {
		return line
	}
	return strconv.AppendFloat(line, v, 'g', -1, 64)
}
