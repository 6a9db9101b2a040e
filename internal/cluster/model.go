package cluster

// Model is a cluster of a given number of machines: what a Description says of every
// rank. It is read only.
type Model struct {
	Name     string
	Hosts    []Host // by rank
	Networks []Network
	Sites    []string
	Wide     []Wide  // by index: Paths
	Events   []Event // in order of At
	wide     [][]int // by two sites: index into Wide, -1 if none
}

// Host is one machine of a model.
type Host struct {
	Class
	Site    int
	Network int // index into Model.Networks
}

// WideOf is the index of the line between two sites, -1 within one.
func (m *Model) WideOf(a, b int) int {
	if a == b {
		return -1
	}
	return m.wide[a][b]
}
