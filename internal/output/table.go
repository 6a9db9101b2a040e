package output

import (
	"io"
	"strconv"
)

// writeCSV writes a line x,y,z,u,phi per point in memory order, followed by the extra fields. The digits
// suffice to read the same numbers back. Coordinates of unused axes are 0; phi is empty without an obstacle.
func writeCSV(w io.Writer, g *grid) error {
	if g.p.FixedPoint != nil {
		return writeUnknowns(w, g)
	}
	head := "x,y,z,u,phi"
	for _, e := range g.extra {
		head += "," + e.Name
	}
	if _, err := io.WriteString(w, head+"\n"); err != nil {
		return err
	}
	var line []byte
	return g.each(func(n node) error {
		line = line[:0]
		for _, c := range n.at {
			line = append(strconv.AppendFloat(line, c, 'g', -1, 64), ',')
		}
		line = append(strconv.AppendFloat(line, n.u, 'g', -1, 64), ',')
		if g.p.Obstacle != nil {
			line = strconv.AppendFloat(line, g.p.Obstacle(n.at), 'g', -1, 64)
		}
		for _, e := range g.extra {
			line = strconv.AppendFloat(append(line, ','), e.Of(n.at), 'g', -1, 64)
		}
		_, err := w.Write(append(line, '\n'))
		return err
	})
}

// writeUnknowns writes a line index,x per unknown of an iteration.
func writeUnknowns(w io.Writer, g *grid) error {
	if _, err := io.WriteString(w, "index,x\n"); err != nil {
		return err
	}
	var line []byte
	for i, v := range g.u {
		line = strconv.AppendFloat(append(strconv.AppendInt(line[:0], int64(i), 10), ','), v, 'g', -1, 64)
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}
