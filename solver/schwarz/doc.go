// Package schwarz implements the restricted additive Schwarz method (Cai and Sarkis, SIAM J. Sci.
// Comput. 21, 1999) with a coarse correction. Each peer solves on its box, extended by an overlap,
// with a local method and the newest values of its neighbours.
//
// 1. Every scheme is supported. In lockstep with a fixed number of inner cycles, iterate k+1 is a
// function of iterate k and the result is reproducible.
// 2. The run converges for every M-matrix, whatever the local method: a local solve that does not
// reduce the residual is replaced by relaxation (ADR 34).
// 3. A coarse correction that does not help is suspended. The relaxation alone converges.
package schwarz
