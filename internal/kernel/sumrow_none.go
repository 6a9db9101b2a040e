//go:build !amd64 || noasm

package kernel

// addRow adds a row of residuals.
func (isa instructions) addRow(n *Norm, r []float64) { n.addRow(r) }

func quickest() instructions { return plain }

func (isa instructions) largestOf(row []float64) float64 { return largestOf(row) }

// addValues adds a row of values exactly.
func (isa instructions) addValues(s *Sum, row []float64) {
	for _, v := range row {
		s.Add(v)
	}
}
