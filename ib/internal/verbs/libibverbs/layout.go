//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

// Structures of infiniband/verbs.h. Go aligns their fields as C does. Names are those of C
// without prefixes. Fields named _ are not used here.

type cContext struct { // ibv_context
	_   uintptr  // device
	ops struct { // ibv_context_ops
		_           [11]uintptr
		pollCQ      uintptr
		reqNotifyCQ uintptr
		_           [12]uintptr
		postSend    uintptr
		postRecv    uintptr
		_           [5]uintptr
	}
	_, asyncFD int32 // the first: cmd_fd
}

type cDeviceAttr struct { // ibv_device_attr
	_                               [80]byte
	maxMRSize, _                    uint64
	_                               [3]uint32
	maxQP, maxQPWR                  int32
	_                               uint32
	maxSGE, _, maxCQ, maxCQE, maxMR int32
	_                               [21]int32
	_                               uint16
	_, physPortCnt                  uint8
}

// cPortAttr is what the function ibv_query_port fills. The link layer was added later; only
// the inline function of the header fills it.
type cPortAttr struct { // _compat_ibv_port_attr
	state, _, activeMTU, gidTblLen int32
	_                              [4]uint32
	_, lid, _                      uint16
	_                              [8]byte
	_                              [18]byte // the link layer, and what later headers have
}

type cMR struct { // ibv_mr
	_, _       uintptr // context, pd
	addr, _    uintptr // length
	_          uint32  // handle
	lkey, rkey uint32
}

type cCompChannel struct { // ibv_comp_channel
	_     uintptr // context
	fd, _ int32   // refcnt
}

type cQPCap struct { // ibv_qp_cap
	maxSendWR, maxRecvWR, maxSendSGE, maxRecvSGE, _ uint32
}

type cQPInitAttr struct { // ibv_qp_init_attr
	_, sendCQ, recvCQ, _ uintptr
	cap                  cQPCap
	qpType, _            int32
}

type cQP struct { // ibv_qp, as far as qp_num
	_     [6]uintptr
	_     uint32 // handle
	qpNum uint32
}

type cAHAttr struct { // ibv_ah_attr with its ibv_global_route
	_                      [0]uint64 // the union aligns so
	dgid                   [16]byte
	_                      uint32
	sgidIndex, hopLimit, _ uint8
	dlid                   uint16
	_                      [3]uint8
	isGlobal, portNum      uint8
}

type cQPAttr struct { // ibv_qp_attr
	qpState, _, pathMTU, _                          int32
	_, rqPSN, sqPSN, destQPNum, accessFlags         uint32
	_                                               cQPCap
	ah, _                                           cAHAttr
	_                                               [2]uint16 // indices of partition keys
	_                                               [2]uint8
	maxRdAtomic, maxDestRdAtomic                    uint8
	minRNRTimer, portNum, timeout, retryCnt, rnrTry uint8
	_                                               [2]uint8
	_                                               uint32
}

type cSGE struct { // ibv_sge
	addr         uint64
	length, lkey uint32
}

type cSendWR struct { // ibv_send_wr
	wrID           uint64
	next, sgList   uintptr
	numSGE, opcode int32
	sendFlags      uint32
	immData        uint32 // in network order
	remoteAddr     uint64 // of wr.rdma
	rkey           uint32
	_              [24]byte
	_              [6]uint64 // of memory windows
}

type cRecvWR struct { // ibv_recv_wr
	wrID         uint64
	next, sgList uintptr
	numSGE       int32
}

type cWC struct { // ibv_wc
	wrID              uint64
	status, opcode    int32
	_, byteLen        uint32
	immData           uint32 // in network order
	qpNum, _, wcFlags uint32
	_                 [3]uint16
}

type cAsyncEvent struct { // ibv_async_event
	element   uintptr // a queue pair, a completion queue, or a port's number
	eventType int32
}

// Numbers of infiniband/verbs.h.
const (
	sendSignaled = 1 << 1

	wcSend            = 0
	wcRDMAWrite       = 1
	wcRecv            = 1 << 7
	wcRecvRDMAWithImm = wcRecv + 1
	wcWithImm         = 1 << 1

	eventQPFatal     = 1
	eventQPReqErr    = 2
	eventQPAccessErr = 3
	eventDeviceFatal = 8
	eventPortActive  = 9
	eventPortErr     = 10

	qpStateMask = 1 << 0
)
