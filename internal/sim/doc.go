// Package sim runs a whole cluster in virtual time: the same p2psap.Node, CTP*
// composites and richardson.Worker as a real run, over links and control connections
// that delay, lose, double, reorder and break, on peers of different speeds. One
// seed gives everything, so a failure can be replayed.
//
// A run has two phases: faults until Scenario.Calm, then none, and then it must
// finish. Check judges how it finished by what the problem says, never by what a
// peer believed.
package sim
