// Package schwarz is the restricted additive Schwarz method (Cai and Sarkis, SIAM J. Sci. Comput. 21,
// 1999) with a coarse correction: each peer solves on its box grown by an overlap, by a local
// method, with the newest values of its neighbours, in every scheme.
package schwarz
