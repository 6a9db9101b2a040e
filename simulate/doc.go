// Package simulate runs a cluster in virtual time: real peers and the real protocol
// (p2psap.Node with its micro-protocols) on a model of machines and networks. Values, messages
// and frames are real; the model says how long relaxations take, what the protocol costs a
// processor, and what networks do to frames.
//
// A run needs a model, and peers:
//
//  1. Describe a cluster: by name or YAML file (package simulate/cluster/file), as a
//     cluster.Description in Go (see its Check), or as this machine (package
//     internal/calibration).
//     Description.Model makes the cluster of so many machines.
//  2. Say what the peers do: Config.Solver for an obstacle problem, or Config.New for peers of
//     an iteration of your own.
//  3. Set Config.Catalog and Config.Policy to try micro-protocols of your own.
//  4. Call Run.
//
// A run is a function of its Config: one seed gives one result, on any number of threads.
package simulate
