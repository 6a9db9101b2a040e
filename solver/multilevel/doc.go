// Package multilevel implements the methods on the whole grid that keep all peers at the same
// iterate: red-black SOR and multigrid.
//
// 1. The answer and the number of cycles are bitwise those of one peer, on any partition and with
// any number of threads.
// 2. The scheme must keep lockstep (iterate.Scheme.Lockstep). Method.Check rejects other schemes.
// 3. Multigrid guards every correction: a cycle that does not reduce the residual or the energy is
// replaced by relaxation.
// 4. SolveBy solves in one process without peers, by any method of package method.
package multilevel
