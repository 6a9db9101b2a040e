package published

// Exchanged returns the number of points that the machine that exchanges most sends in a sweep. It
// receives as many. The grid of Side points a side is cut into parts along each axis.
func Exchanged(parts [3]int) int {
	points := 0
	for axis, n := range parts {
		face := Side * Side * parts[axis] / (parts[0] * parts[1] * parts[2])
		points += face * min(2, n-1)
	}
	return points
}

// Formula returns the simplest model of the synchronous columns: a machine's share of the sequential
// run and a time in proportion to the points that it exchanges, with the factor of each column fitted
// on its last row. Asynchronous columns have the share only.
func Formula(cut func(machines int) [3]int) Table {
	var t Table
	m := Measured()
	last := len(Machines) - 1
	for _, c := range Cells() {
		share := Sequential / float64(Machines[c.Row])
		t[c.Column][c.Row] = share
		if c.Column.Async() {
			continue
		}
		factor := (m[c.Column][last] - Sequential/float64(Machines[last])) / float64(Exchanged(cut(Machines[last])))
		t[c.Column][c.Row] += factor * float64(Exchanged(cut(Machines[c.Row])))
	}
	return t
}
