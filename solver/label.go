package solver

// LabelIterate is the iterate of its time step that a halo's label (Op.Label) names.
func LabelIterate(label uint64) Iteration {
	_, _, sweep := unpackLabel(label)
	return sweep
}
