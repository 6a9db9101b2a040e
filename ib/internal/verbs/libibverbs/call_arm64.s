//go:build linux && !nolibibverbs

#include "go_asm.h"
#include "textflag.h"

GLOBL ·trampolineABI0(SB), NOPTR|RODATA, $8
DATA ·trampolineABI0(SB)/8, $trampoline<>(SB)

// A function of the procedure call standard: R0 points to a call. R19 is kept by the
// callee.
TEXT trampoline<>(SB), NOSPLIT|NOFRAME, $0
	STP.W (R29, R30), -32(RSP)
	MOVD  R19, 16(RSP)
	MOVD  RSP, R29
	MOVD  R0, R19
	MOVD  (call_args+8)(R19), R1
	MOVD  (call_args+16)(R19), R2
	MOVD  (call_args+24)(R19), R3
	MOVD  (call_args+32)(R19), R4
	MOVD  (call_args+40)(R19), R5
	MOVD  call_fn(R19), R16
	MOVD  (call_args+0)(R19), R0
	BL    (R16)
	MOVD  R0, call_result(R19)
	MOVD  call_errnoAt(R19), R16
	CBZ   R16, done
	BL    (R16)
	MOVW  (R0), R0
	MOVW  R0, call_errno(R19)

done:
	MOVD  $0, R0
	MOVD  16(RSP), R19
	LDP.P 32(RSP), (R29, R30)
	RET
