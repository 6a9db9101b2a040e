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
//	Challenge {version, nonce} →
//	                           ← Join {version, fingerprint, proof, nonce}
//	Welcome {rank, proof, run} →      or Refuse {reason}
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
// Both ends prove that they know the run's secret by an HMAC over the other's
// nonce (RFC 2104); the secret itself never travels. What follows is not
// encrypted.
package rendezvous
