// Package register decides which process leads a run. It is a register with one operation, compare-and-swap, that
// stays available while a minority of its processes is lost. It follows Lamport, "Paxos Made Simple" (2001), and
// Rystsov, "CASPaxos" (arXiv:1802.07000).
//
// The values of the register are terms, numbered from 1. A term names the leader, and the processes that keep the
// register: its keepers. The keepers of term n decide term n+1 by single-decree Paxos. A majority of them suffices.
// The set of keepers may change with every term. There is no log: a keeper stores the newest decided term that it
// knows, and its state in the decision on the next one.
//
// A process has one Keeper. It makes a Proposal when it wants to replace the newest term. Both are
// functions of the messages that they are given. Their caller has these duties:
//
//  1. Deliver every message to the process that it is addressed to, also if that is the sender, and there to the
//     Keeper and to the Proposal, if any. Each ignores what is not for it. Messages may be lost, repeated and
//     reordered.
//  2. Trust the senders. Processes may stop for ever, but those that run follow the protocol. An invented term is
//     not detected.
//  3. Never reuse an address. A keeper has no storage: a process that lost its memory needs a new address.
//  4. Use a higher round in each Proposal of a process on the same base: one more than Round of the one before.
//  5. Call Retry when a Proposal makes no progress, after a random time, so that two processes do not hinder each
//     other for ever.
//  6. Give the result of a Proposal to the process's own Keeper, by Adopt.
//  7. Modify no term after it was passed to this package or returned by it.
package register
