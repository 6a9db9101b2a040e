// Package sim tests whole clusters under faults in virtual time. Runs use the same p2psap.Node, CTP*
// composites, exchange and peers as real runs, over links and control connections that delay, lose,
// duplicate, reorder and break, with peers of different speeds. A run is a function of its seed, so
// a failure can be replayed.
//
// A run has two phases: faults until Scenario.FaultsEnd, then none, and then it must end. Check
// checks the outcome by the problem alone, not by what the peers report.
package sim
