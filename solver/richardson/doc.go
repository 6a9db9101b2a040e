// Package richardson is the projected Richardson method on the whole grid, in every scheme: each peer
// relaxes its box and exchanges faces with its neighbours. Planes of the grid may move between
// peers while they run.
package richardson
