package problem

// Unexported functions for the tests of this package, which import packages that import it.
var (
	EdgeOf      = Coefficient.edge
	DiffusionOf = (*Problem).diffusion
	FieldOf     = (*Discretization).field
)
