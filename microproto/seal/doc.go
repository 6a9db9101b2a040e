// Package seal protects frames between two hosts: the micro-protocols of a composite
// of its own between CTP* and the link. AEAD encrypts and authenticates every frame
// under a number of its own (RFC 5116; AES-128-GCM), AntiReplay takes each number once
// (RFC 4303 §3.4.3). Neither knows where the keys come from: p2psap derives them from
// what the two ends tell each other over the control channel.
//
// The header is authenticated with the payload, that of every micro-protocol in the
// composite. A frame that does not pass is dropped and counted; it costs at most one
// decryption, changes nothing else, and nothing is ever answered to it.
package seal
