// Package driver runs a p2psap.Node in real time. It owns the clock, the links, the control
// connections and every goroutine; the decisions of the protocol are the Node's.
//
// # Contract with the caller
//
//  1. Make a node with New from a Config with Name, Rails, Catalog and Policy, and either an Identity
//     or Plain. New owns the links from then on, also when it fails. Close closes them.
//
//  2. Connect to a peer at its ControlAddr, then Open sessions with it. Both ends open a session under
//     the same name with the same slots. The calls block until both ends agree or ctx ends.
//
//  3. A Socket's calls are those of p2psap.Socket. Methods of Node may be called from any goroutine;
//     of a Socket one goroutine may send while another receives. No call holds a lock while it waits.
//
//  4. Data of a synchronous Send belongs to the session until Wait has reported the transfer as
//     accepted, or the session has ended. Data of an asynchronous Send may be reused on return.
//
//  5. A compute loop uses TrySend and Poll, which never block, WaitAny when it has nothing to do, and
//     Pump now and then, so that arrivals are handled without waiting for a goroutine to be scheduled.
//
//  6. Errors: p2psap.ErrClosed after Close at this end; p2psap.ErrPeerClosed after Close at the other;
//     a *p2psap.PeerLostError from WaitAny and from every call of the peer's sessions once a peer was
//     silent for Config.PeerTimeout, or its process on this host has ended; a *p2psap.RefusedError when the
//     two ends do not match;
//     p2psap.ErrBusy from TrySend while the receiver's grant is used up.
//
// # Threads
//
// One lock guards the core. A Send gives its frames to the link on the caller's goroutine. One goroutine
// always receives from each link, whatever the application does; each control connection has a reader and
// a writer; one goroutine waits for the next timer.
package driver
