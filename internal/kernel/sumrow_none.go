//go:build !amd64 || noasm

package kernel

// addRow adds a row of residual values.
func (isa instructionSet) addRow(n *Norm, r []float64) { n.addRow(r) }

func bestInstructions() instructionSet { return plain }

func (isa instructionSet) largestOf(row []float64) float64 { return largestOf(row) }

// addValues adds a row of values exactly.
func (isa instructionSet) addValues(s *Sum, row []float64) {
	for _, v := range row {
		s.Add(v)
	}
}
