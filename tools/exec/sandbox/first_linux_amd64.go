package sandbox

const elfMachine = 62 // EM_X86_64

// sleepCode is: pause(), again.
var sleepCode = []byte{
	0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, 34
	0x0f, 0x05, // syscall
	0xeb, 0xf7, // jmp to the beginning
}
