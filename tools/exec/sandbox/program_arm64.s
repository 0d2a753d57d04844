#include "textflag.h"

// func branch(flags uintptr, first *step, failed *failure) (pid uintptr)
//
// The child uses registers alone: the memory is the parent's, and so is the stack. The offsets are those of step.
TEXT ·branch(SB), NOSPLIT|NOFRAME, $0-32
	MOVD flags+0(FP), R0
	MOVD first+8(FP), R19
	MOVD failed+16(FP), R20
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $220, R8         // clone
	SVC
	CBZ  R0, act
	MOVD R0, pid+24(FP)
	RET

act:
	MOVD 8(R19), R0
	MOVD 56(R19), R21     // first argument from elsewhere
	CBZ  R21, second
	MOVD (R21), R0

second:
	MOVD 16(R19), R1
	MOVD 24(R19), R2
	MOVD 64(R19), R21     // third argument from elsewhere
	CBZ  R21, rest
	MOVD (R21), R2

rest:
	MOVD 32(R19), R3
	MOVD 40(R19), R4
	MOVD 48(R19), R5
	MOVD 0(R19), R8
	SVC
	CMN  $4095, R0
	BHI  error
	MOVD 72(R19), R21
	CBZ  R21, branches
	MOVD R0, (R21)

branches:
	MOVD 80(R19), R21
	CBZ  R21, next
	CBNZ R0, next
	MOVD R21, R19         // a process of its own from here on
	B    act

next:
	MOVD 88(R19), R19
	B    act

error:
	MOVD 96(R19), R21
	CBNZ R21, next        // it may fail
	MOVD 8(R20), R21
	CBNZ R21, end         // another has failed before, and this follows from it
	MOVD 104(R19), R21
	MOVD R21, 0(R20)
	NEG  R0, R0
	MOVD R0, 8(R20)

end:
	MOVD $127, R0
	MOVD $94, R8          // exit_group
	SVC
	B    end
