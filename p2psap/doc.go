// Package p2psap is the core of the self-adaptive transport P2PSAP: a Node is a state machine that
// associates with peers over control connections, opens sessions with them, composes a data channel
// for each session from micro-protocols, and changes the composition while the session is open. It
// does no I/O, starts no goroutine and reads no clock. Package driver runs a Node in real time; most
// programs use that and never call a Node.
//
// Three rooms stand below a Node: package path (what two peers know about the way between them),
// internal/control (messages of the control channel and associations) and internal/rail (links and
// the paths over them). A Policy selects the micro-protocols; TablePolicy is that of Table I.
//
// # Contract with the caller of a Node
//
//  1. Calls. A Node is not safe for concurrent use. Every call runs to completion and never blocks.
//     Links, policies, micro-protocols and tracers must not call the Node back.
//
//  2. Time. Every call that can make something happen takes now, nanoseconds since an instant of the
//     caller's choice. now must not decrease from call to call. The caller calls Advance(now) as soon
//     as now has reached Deadline(); later is allowed and only delays what is due. Deadline may
//     change with every call, so the caller asks again after each.
//
//  3. Order after a call. After one call or several, the caller first offers Frames(i) to the link of
//     each rail i and reports with Sent(i, k) how many it took. It then calls Drain and carries the
//     outputs out, in their order. Carrying an output out may mean calling the Node again; the caller
//     repeats this step until Drain returns nothing.
//
//  4. Frames out. Frames(i) returns the Node's own slice: it is valid until the next call. A link
//     owns the frames that it took and releases them. Frames that it did not take stay queued and are
//     offered again; asynchronous values among them may be replaced by newer ones.
//
//  5. Frames in. Input passes the ownership of a frame to the Node, whatever the frame holds. Any
//     bytes are safe. On rails other than Rails[0] frames must not be lost or reordered while the
//     path is up; RailEvent reports that a rail or a connection of it went down or came back.
//
//  6. Control connections. The caller makes a connection for every OutDial and for every one that it
//     accepts, and reports it with ControlUp under a ConnID that is never 0 and never used again. A
//     connection is a reliable ordered stream of messages of at most MaxControlBytes. Messages go to
//     Control whole and in order. DialFailed and ControlDown report failures. The Node reconnects by
//     itself; a session does not notice.
//
//  7. Buffers. Data of a synchronous Send belongs to the Node until Accepted has reached the transfer
//     or the session has ended. Data of an asynchronous Send may be reused on return. Receive writes
//     to the caller's Slot and keeps nothing of it. Post lends a Slot's memory until Withdraw or the
//     next Receive. A View keeps frames of the link, which its user releases; it may outlive the session.
//
//  8. Errors. ErrBusy (Send: no room; Adapt: an earlier one is not over) and
//     ErrNothing (Receive) mean: try again after an OutActivity for the session. Errors
//     that end a session or a peer are reported once by OutEnded, OutPeerLost, OutPeerClosed or
//     OutPeerRefused, and returned by every later call for it. ErrSlot, ErrSession and errors of
//     Open and NewNode are the caller's mistakes and change nothing.
//
//  9. Sessions. A number returned by Open stays taken until Close was called for a session that has
//     ended. Close first lets the last transfers be accepted; State returns SessionEnded when that
//     is over.
//
//  10. Determinism. Equal calls with equal arguments and links that behave equally give equal outputs,
//     bit by bit. All random numbers follow from Seed, Incarnation and Entropy.
package p2psap
