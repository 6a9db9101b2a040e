// Package iterate runs a fixed-point iteration x ← F(x) whose unknowns are divided among peers. It
// decides which values of its neighbours a peer may read, when the run ends, and with which answer.
// It knows no grid, no operator and no obstacle.
//
// # Blocks
//
// To run an iteration of your own, implement Block for the unknowns of each peer and pass it to
// NewPeer, or to solver.Iterate, which also exchanges the messages. Four methods suffice: the number
// of unknowns, the neighbours with the indices of the exchanged values, the starting values, and
// Relax, which evaluates the peer's part of F. The framework owns all arrays, packs and unpacks
// halos, measures residuals with exact sums and ends the run. A block has no access to messages,
// schemes or time; so every block runs in every scheme.
//
// # Schemes and convergence
//
// The Scheme of a run says which iterate of a neighbour a relaxation may read:
//
//   - Synchronous: relaxation k reads iterate k. The bits equal those of the sequential iteration
//     on any number of peers. It converges where the sequential iteration does: if F is a
//     contraction in any norm.
//   - Asynchronous: the newest iterate received, of any age. It converges if F is a contraction in a
//     weighted maximum norm, also after losses (El Tarazi, Numer. Math. 39, 1982). Examples are
//     Jacobi's method for an M-matrix or a diagonally dominant matrix, projected onto bounds or not,
//     and monotone iterations that start on one side of the solution (Miellou, 1975).
//   - BoundedDelay(d): the newest iterate received if it is at most d iterates behind; otherwise the
//     peer waits. It converges under the condition of Asynchronous, and sometimes under weaker ones.
//     BoundedDelay(0) is synchronous over sessions that may lose messages.
//   - Hybrid: synchronous within a cluster of peers, asynchronous between clusters. It needs the
//     condition of Asynchronous.
//
// The residual of a run of blocks is ‖x − F(x)‖₂ of the assembled vector, divided by that of the
// starting vector. For a contraction with constant q < 1 in the Euclidean norm the error is at most the
// residual divided by 1 − q.
//
// # Losses
//
// The set of peers is fixed within a run. If one is lost, the others stop and keep their values, Repair computes those of
// the lost block from the Halo of each neighbour, and a new run goes on from there with StartFrom. The program obstacle does
// that for every FixedPoint; see docs/new-iteration.md.
//
// # Termination
//
// Local convergence flags are never used: a halo in flight can undo them. A run ends with the reason
// Converged only if the exact residual of one assembled vector meets the tolerance.
//
// In lockstep (Scheme.Lockstep) all peers are at the same iterate. At selected iterates k a reduction
// over a tree of the peers adds the exact residuals, and the verdict takes effect at the same later
// iterate k + Lag at every peer. The answer is that iterate.
//
// In all other schemes the root of the tree begins a snapshot when estimates of the residual suggest that
// the tolerance is met. Each peer captures its block, sends the captured halos over the agreement sessions,
// and measures the residual of the captured vector. The captured halo of snapshot s is also the marker
// that snapshot s has begun (Chandy and Lamport, ACM Trans. Comput. Syst. 3, 1985). If the residual meets
// the tolerance, the captured vector is the answer; otherwise the run continues. Estimates only influence
// when snapshots are taken.
//
// # The contract of a Peer
//
// A Peer is pure reverse communication: it does no input or output, reads no clock and starts no
// goroutine. Its caller (package exchange in a real run, package simulate in virtual time) does the
// following.
//
//  1. It calls the methods of a Peer from one goroutine at a time.
//  2. It calls Next and carries out the operation returned, before it calls Next again. OpRelax is carried
//     out by a call of Relax with the same operation; Next repeats it until then.
//  3. Times are measured from the start of the run. They never decrease from one call to the next.
//  4. OpSend: it passes a buffer of Op.Bytes bytes to Pack before the next call of Next or Relax, and
//     sends the buffer with Op.Tag and Op.Label on the halo session to Op.To. In synchronous mode the
//     session delivers every message in order. In asynchronous mode it may lose, duplicate, delay or
//     overtake messages and segments of messages.
//  5. OpAgree: it sends Op.Message on the agreement session to Op.To, which is reliable and
//     in order in every scheme. The slice belongs to the caller.
//  6. OpWait: it waits for an arrival, or until Op.Until if that is not 0. An earlier call of Next does
//     no harm.
//  7. OpAdapt: it brings the halo sessions that the scheme declares asynchronous to the mode
//     Op.Asynchronous. Both ends of a session change together; then it calls Next.
//  8. OpKeep, in a run that keeps iterates (Config.KeepEvery): it stores a copy of the values and of Op.Message with
//     another peer, and calls Next when that is done. OpKept: every peer has done so. Package buddy stores copies.
//  9. Arrivals are passed to Halo and Agree, between any two other calls. Halo receives the whole slot and
//     the label of its oldest segment. The peer reads the data only until the next call of Halo for
//     the same slot, so the caller keeps one buffer per slot and receives into it.
//  10. An error of Halo or Agree names the sender and ends the run, as OpFail does: the caller reports it.
//     Peers check everything that they receive.
//  11. After OpDone the peer needs no more messages, and sends none. Until all its messages are delivered,
//     the caller keeps the agreement sessions open. Outcome and Solution return the result.
//  12. Stop may be called at any time. The run then ends with the newest vector that all peers agree
//     on, usually after one or two relaxations.
//
// A method of its own that is not a Block (package richardson, package schwarz) embeds Coordination, which
// implements the messages, the tree and the rules above.
package iterate
