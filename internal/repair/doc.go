// Package repair computes the values of lost boxes of a run from the values around them. A box is lost with the
// peer that computed it. The obstacle problem on the box, with the values of its neighbours as boundary data, has
// a solution that is no further from that of the whole problem than these values are, if A is an M-matrix
// (ADR 67). So a repair does not raise the error bound of a run, and peers need no copies of each other's values.
//
// Recut tells which values are missing. Survivors send what Pack returns. The process that takes the place of a lost
// one collects it in Faces, and calls Solve for each of Groups. Next returns the configurations with which all peers
// go on.
package repair
