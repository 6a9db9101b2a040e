// Package rail holds the links of a node, called rails, and the paths over them to its peers.
//
// Rail 0 is the base rail: every peer is reached by it and it does not go down. A path is one of
// the other rails between this node and a peer that has it too. A path is set up in rounds, which
// both ends number alike: each end makes an offer, accepts the other's and announces that. The path
// is then up, until either end announces that it is down. The round is then over: both ends give its
// connection up, and the end that found the fault begins another round. An end that receives a
// message of a later round enters that round.
//
// A Binding ties a session's channel to one round of a path.
package rail
