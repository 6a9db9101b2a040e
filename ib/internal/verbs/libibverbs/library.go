//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"strings"

	"github.com/ebitengine/purego"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// soname is the library's name since 2006; its ABI has only grown.
const soname = "libibverbs.so.1"

// library holds the addresses of the C functions. It stays loaded, since the drivers that it
// loads cannot be unloaded.
type library [functions]uintptr

// function is the index of a C function in a library.
type function int

const (
	getDeviceList function = iota
	freeDeviceList
	getDeviceName
	openDevice
	closeDevice
	queryDevice
	queryPort
	queryGID
	getAsyncEvent
	ackAsyncEvent
	allocPD
	deallocPD
	regMR
	deregMR
	createCompChannel
	destroyCompChannel
	getCQEvent
	ackCQEvents
	createCQ
	destroyCQ
	createQP
	destroyQP
	modifyQP
	queryQP
	errnoLocation
	functions
)

// symbols returns the names of the functions in the order of their indices.
func symbols() [functions]string {
	return [functions]string{
		"ibv_get_device_list", "ibv_free_device_list", "ibv_get_device_name", "ibv_open_device", "ibv_close_device",
		"ibv_query_device", "ibv_query_port", "ibv_query_gid", "ibv_get_async_event", "ibv_ack_async_event",
		"ibv_alloc_pd", "ibv_dealloc_pd", "ibv_reg_mr", "ibv_dereg_mr",
		"ibv_create_comp_channel", "ibv_destroy_comp_channel", "ibv_get_cq_event", "ibv_ack_cq_events",
		"ibv_create_cq", "ibv_destroy_cq", "ibv_create_qp", "ibv_destroy_qp", "ibv_modify_qp", "ibv_query_qp",
		"__errno_location", // of the C library, which libibverbs needs
	}
}

// load loads the library from the system loader's path.
func load(name string) (*library, error) {
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %v; install libibverbs1 and ibverbs-providers (Debian, Ubuntu), "+
			"or libibverbs (Fedora, RHEL)", verbs.ErrNoLibrary, err)
	}
	l := new(library)
	var missing []string
	for i, symbol := range symbols() {
		if l[i], err = purego.Dlsym(handle, symbol); err != nil {
			missing = append(missing, symbol)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s lacks %s", verbs.ErrNoLibrary, name, strings.Join(missing, ", "))
	}
	return l, nil
}
