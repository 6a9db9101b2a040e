// Package libibverbs is the provider of package verbs for real adapters. The library
// is loaded when a provider is made, so that a program starts without it; on systems
// and architectures other than Linux on amd64 and arm64, and with the build tag
// nolibibverbs, there is a provider that says so.
//
// Functions of C are called without cgo, on the system stack: those of the hot path
// (post, poll, arm) through the operations table of the device's context, as the
// inline functions of infiniband/verbs.h do, and without allocation. layout_test.go
// holds the structures that are shared with C against the headers of rdma-core.
package libibverbs
