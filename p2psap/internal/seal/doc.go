// Package seal protects frames between two hosts. Its micro-protocols form a composite of their
// own between CTP* and the link. AEAD encrypts and authenticates every frame, each under a
// number of its own (RFC 5116; AES-128-GCM). AntiReplay accepts each number once (RFC 4303
// §3.4.3). The caller supplies the secrets; p2psap derives them from the messages of the control
// channel.
//
// The complete header of the composite is authenticated with the payload. A frame that fails is
// dropped and counted. It costs at most one decryption, changes no other state, and is never
// answered.
package seal
