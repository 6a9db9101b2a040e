// Package richardson implements the projected Richardson method in every scheme. Each peer relaxes its box and
// exchanges faces with its neighbours. Planes of the grid may move between peers during the run.
package richardson
