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
type library struct {
	errnoAt uintptr

	getDeviceList, freeDeviceList, getDeviceName, openDevice, closeDevice uintptr
	queryDevice, queryPort, queryGID                                      uintptr
	getAsyncEvent, ackAsyncEvent                                          uintptr
	allocPD, deallocPD, regMR, deregMR                                    uintptr
	createCompChannel, destroyCompChannel, getCQEvent, ackCQEvents        uintptr
	createCQ, destroyCQ                                                   uintptr
	createQP, destroyQP, modifyQP, queryQP                                uintptr
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
	for _, f := range []struct {
		to   *uintptr
		name string
	}{
		{&l.getDeviceList, "ibv_get_device_list"},
		{&l.freeDeviceList, "ibv_free_device_list"},
		{&l.getDeviceName, "ibv_get_device_name"},
		{&l.openDevice, "ibv_open_device"},
		{&l.closeDevice, "ibv_close_device"},
		{&l.queryDevice, "ibv_query_device"},
		{&l.queryPort, "ibv_query_port"},
		{&l.queryGID, "ibv_query_gid"},
		{&l.getAsyncEvent, "ibv_get_async_event"},
		{&l.ackAsyncEvent, "ibv_ack_async_event"},
		{&l.allocPD, "ibv_alloc_pd"},
		{&l.deallocPD, "ibv_dealloc_pd"},
		{&l.regMR, "ibv_reg_mr"},
		{&l.deregMR, "ibv_dereg_mr"},
		{&l.createCompChannel, "ibv_create_comp_channel"},
		{&l.destroyCompChannel, "ibv_destroy_comp_channel"},
		{&l.getCQEvent, "ibv_get_cq_event"},
		{&l.ackCQEvents, "ibv_ack_cq_events"},
		{&l.createCQ, "ibv_create_cq"},
		{&l.destroyCQ, "ibv_destroy_cq"},
		{&l.createQP, "ibv_create_qp"},
		{&l.destroyQP, "ibv_destroy_qp"},
		{&l.modifyQP, "ibv_modify_qp"},
		{&l.queryQP, "ibv_query_qp"},
		{&l.errnoAt, "__errno_location"}, // of the C library, which libibverbs needs
	} {
		if *f.to, err = purego.Dlsym(handle, f.name); err != nil {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s lacks %s", verbs.ErrNoLibrary, name, strings.Join(missing, ", "))
	}
	return l, nil
}
