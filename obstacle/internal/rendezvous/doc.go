// Package rendezvous is how the processes of one run find each other: a small
// protocol over TCP between the launcher, which the user started, and its peers.
// It carries no halo and no agreement; those go between peers.
//
// Each message is a frame: its body's length (4 bytes, big endian), its kind (1
// byte), the body. A body is JSON, except that of Chunk, which carries the bytes
// of a problem, a starting iterate or a solution. Every kind has a bound on its
// length, and the reader takes no memory for bytes that have not come.
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
//	Stop or Lost, if need be   →
//	                           ← Chunk…, Result
//	Bye                        →
//
// Each end proves that it knows the run's secret (driver.Identity); the secret itself
// never travels. Nothing is said before both have, so a stranger learns nothing of the run.
package rendezvous
