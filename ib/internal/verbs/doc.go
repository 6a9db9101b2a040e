// Package verbs is the part of the InfiniBand verbs (InfiniBand Architecture
// Specification, volume 1, chapter 11) that the link of package ib needs, as an
// interface with two providers: libibverbs, loaded at run time, and a software adapter
// in pure Go that obeys the same rules. One suite tests both.
package verbs
