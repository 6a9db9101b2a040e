// Package rendezvous implements the protocol over TCP between the launcher, which the user started, and the peers of
// a run. Halos and agreement messages do not use it; peers exchange them directly.
//
// Each message is a frame: the length of its body (4 bytes, big endian), its kind (1 byte), the body. A body is JSON,
// except that of Chunk, which holds bytes of a problem, a starting iterate or a solution. The length of every kind is
// bounded, and the reader allocates no memory for bytes that have not arrived.
//
//	launcher                     peer
//	                           ↔ TLS 1.3
//	                           ← proof
//	proof                      →
//	Challenge {version}        →
//	                           ← Join {version, fingerprint}
//	Welcome {rank, run, key}   →      or Refuse {reason}
//	                           ← Listen {control address}
//	                                  until every peer listens
//	Assign, Chunk…             →
//	                           ← Ready
//	Start                      →
//	                           ← Beat…   (also before Ready)
//	Stop or Lost, if required  →
//	                           ← Chunk…, Result
//	Bye                        →
//
// Start comes once to each peer, in the epoch in which the run starts: peers may be lost before, too. A peer that takes a
// place later gets it after Welcome.
//
// If a peer is lost and the run recovers, Epoch begins again with the others what Listen to Result do:
//
//	Epoch, Capture             →
//	                           ← Chunk…, Captured, Listen
//	Assign, Chunk…             →      first to the peer that replaces the lost one
//	                           ← Repaired, from that one
//	                           ← Ready
//
// The process that leads the run asks some peers to be keepers (package register), with Keep. They answer with Keeping, and
// get Record. All peers get Term. If the leader is lost, keepers exchange Vote on connections of their own. Peers connect to
// the one that leads then, with their Standing in Join, and get Welcome or Refuse. Resend asks them for ends of time steps. A
// keeper gets Held and a block for each peer that may be lost with the leader. obstacle attach gets View until the end of the
// run, then Answer and chunks, and sends Bye.
//
// Where several cables join the hosts, a connection outlives the one that it takes: Welcome has its identity and the
// addresses of the launcher. When that host no longer acknowledges, the peer sends Join with Reconnect on a connection to
// another address, and both ends send again what the other has not received. Messages are counted from Welcome on, and
// acknowledged by Received. A process is known by all its addresses, separated by commas (see Ways).
//
// Each end proves that it knows the run's secret (driver.Identity) without sending it. No message is sent before both
// proofs, so an unauthenticated peer learns nothing about the run.
package rendezvous
