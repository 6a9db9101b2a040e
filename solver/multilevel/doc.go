// Package multilevel holds the methods of the whole grid that need all peers at the same place:
// red-black SOR and multigrid. The answer and the number of cycles are bitwise those of one peer, on
// any partition and with any number of threads.
package multilevel
