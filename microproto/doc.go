// Package microproto is a kernel for protocols that are composed of micro-protocols,
// after the Cactus model (Hiltunen; Bhatti, Hiltunen, Schlichting and Chiu, "Coyote",
// ACM TOCS 1998). A micro-protocol is a set of handlers bound to events; a Composite is
// a set of micro-protocols with one header and one pool of messages. Package ctp has the
// micro-protocols of the transport, package mptest tests for your own.
//
// # Contract with the caller of a Composite
//
//  1. A Composite is a deterministic state machine: the same calls with the same arguments
//     give the same outputs. It reads no clock, starts no goroutine and does no I/O.
//  2. NewComposite attaches the micro-protocols from top to bottom. Their set does not change
//     afterwards; another composition is another Composite (see 9).
//  3. Every entry point takes now, which should not decrease. Entry points run to completion.
//     One caller at a time: a Composite is neither safe for concurrent use nor reentrant.
//  4. Open comes first, Close last. Submit and Input take their message or frame also when
//     they return an error.
//  5. After every entry point: Drain the outputs, send the frames, Recycle the messages after
//     use. An undrained composite refuses to transmit once Limits.Outputs is reached.
//  6. Deadline returns when Advance has to be called next. It may change with every call.
//  7. A frame with a Body refers to the memory of the sending user. Send it or Flatten it
//     before the user may change that memory: when the call returns or, in a synchronous
//     session over a reliable link, when the other end has accepted the message.
//  8. An error of Err is final: every later entry point returns it. Close still cleans up.
//  9. To change the composition of an open session: raise DrainSession in the old composite,
//     make the new one, hand over by Migratable and StateExporter, open the new one, close
//     the old one.
//
// # Contract with a micro-protocol
//
// A micro-protocol implements MicroProtocol: Name and Attach. Attach declares what the
// micro-protocol needs and binds handlers; it has no other effect. Handlers follow the rules
// of Exec. What a micro-protocol is capable of is declared in Attach as data
// (Binder.TakesTrains, Binder.Version); what it measures for the layer above are cells
// (CellRTT and others). Beyond that it may implement these interfaces, all optional:
//
//  1. Endpoint: the face of a transport towards sessions. The uppermost counts.
//  2. Migratable: an Endpoint whose session can change its composition while it is open.
//  3. Poster: an Endpoint that assembles messages in the memory of the waiting user.
//  4. Coalescer: an Endpoint that sends small messages as one.
//  5. StateExporter: hands what it measured of the path to the next composition.
//  6. Prober: finds out that long segments do not get through.
package microproto
