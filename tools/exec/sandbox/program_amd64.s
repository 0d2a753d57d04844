#include "textflag.h"

// func branch(flags uintptr, first *step, failed *failure) (pid uintptr)
//
// The child uses registers alone: the memory is the parent's, and so is the stack. The offsets are those of step.
TEXT ·branch(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ flags+0(FP), DI
	MOVQ first+8(FP), BX
	MOVQ failed+16(FP), R13
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $56, AX          // clone
	SYSCALL
	TESTQ AX, AX
	JZ   act
	MOVQ AX, pid+24(FP)
	RET

act:
	MOVQ 8(BX), DI
	MOVQ 56(BX), R12      // first argument from elsewhere
	TESTQ R12, R12
	JZ   second
	MOVQ (R12), DI

second:
	MOVQ 16(BX), SI
	MOVQ 24(BX), DX
	MOVQ 64(BX), R12      // third argument from elsewhere
	TESTQ R12, R12
	JZ   rest
	MOVQ (R12), DX

rest:
	MOVQ 32(BX), R10
	MOVQ 40(BX), R8
	MOVQ 48(BX), R9
	MOVQ 0(BX), AX
	SYSCALL
	CMPQ AX, $-4095
	JCC  error
	MOVQ 72(BX), R12
	TESTQ R12, R12
	JZ   branches
	MOVQ AX, (R12)

branches:
	MOVQ 80(BX), R12
	TESTQ R12, R12
	JZ   next
	TESTQ AX, AX
	JNZ  next
	MOVQ R12, BX          // a process of its own from here on
	JMP  act

next:
	MOVQ 88(BX), BX
	JMP  act

error:
	MOVQ 96(BX), R12
	TESTQ R12, R12
	JNZ  next             // it may fail
	MOVQ 8(R13), R12
	TESTQ R12, R12
	JNZ  end              // another has failed before, and this follows from it
	MOVQ 104(BX), R12
	MOVQ R12, 0(R13)
	NEGQ AX
	MOVQ AX, 8(R13)

end:
	MOVL $127, DI
	MOVL $231, AX         // exit_group
	SYSCALL
	JMP  end
