// Package libibverbs is the provider of package verbs for real adapters. The library
// is loaded on first use, so that a program starts without it. On systems other than Linux on
// amd64 and arm64, and with the build tag nolibibverbs, the provider only returns an error.
//
// C functions are called without cgo, on the system stack. Those of the hot path (post, poll,
// arm) are called through the operations table of the device's context, as the inline
// functions of infiniband/verbs.h do, and without allocation. layout_test.go compares the
// structures shared with C with the headers of rdma-core.
package libibverbs
