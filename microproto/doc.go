// Package microproto is the micro-protocol kernel: the Cactus model (Hiltunen;
// Bhatti, Hiltunen, Schlichting and Chiu, "Coyote", ACM TOCS 1998) as a
// deterministic state machine. A Composite is a set of micro-protocols; a
// micro-protocol is a set of handlers bound to events. Nothing here reads a
// clock, starts a goroutine or does I/O: every entry point takes now, and what
// is to be sent or delivered comes back from Drain.
package microproto
