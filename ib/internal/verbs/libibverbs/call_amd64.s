//go:build linux && !nolibibverbs

#include "go_asm.h"
#include "textflag.h"

GLOBL ·trampolineABI0(SB), NOPTR|RODATA, $8
DATA ·trampolineABI0(SB)/8, $trampoline<>(SB)

// A function of the System V ABI: DI points to a call. BX is kept by the callee.
TEXT trampoline<>(SB), NOSPLIT|NOFRAME, $0
	PUSHQ BP
	MOVQ  SP, BP
	PUSHQ BX
	SUBQ  $8, SP // a call needs SP at a multiple of 16
	MOVQ  DI, BX
	MOVQ  (call_args+0)(BX), DI
	MOVQ  (call_args+8)(BX), SI
	MOVQ  (call_args+16)(BX), DX
	MOVQ  (call_args+24)(BX), CX
	MOVQ  (call_args+32)(BX), R8
	MOVQ  (call_args+40)(BX), R9
	XORL  AX, AX
	MOVQ  call_fn(BX), R11
	CALL  R11
	MOVQ  AX, call_result(BX)
	MOVQ  call_errnoAt(BX), R11
	TESTQ R11, R11
	JZ    done
	CALL  R11
	MOVL  (AX), AX
	MOVL  AX, call_errno(BX)

done:
	XORL AX, AX
	ADDQ $8, SP
	POPQ BX
	POPQ BP
	RET
