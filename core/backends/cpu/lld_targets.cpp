// lld's ELF driver initialises every target that LLVM was configured with. Cuvil links two of them, which keeps about
// 100 MB out of the binary; the initialisers of the others are empty.

#define CUVIL_ABSENT_TARGET(name)                       \
  extern "C" void LLVMInitialize##name##TargetInfo() {} \
  extern "C" void LLVMInitialize##name##Target() {}     \
  extern "C" void LLVMInitialize##name##TargetMC() {}   \
  extern "C" void LLVMInitialize##name##AsmPrinter() {} \
  extern "C" void LLVMInitialize##name##AsmParser() {}

CUVIL_ABSENT_TARGET(AMDGPU)
CUVIL_ABSENT_TARGET(ARM)
CUVIL_ABSENT_TARGET(AVR)
CUVIL_ABSENT_TARGET(BPF)
CUVIL_ABSENT_TARGET(Hexagon)
CUVIL_ABSENT_TARGET(Lanai)
CUVIL_ABSENT_TARGET(LoongArch)
CUVIL_ABSENT_TARGET(M68k)
CUVIL_ABSENT_TARGET(MSP430)
CUVIL_ABSENT_TARGET(Mips)
CUVIL_ABSENT_TARGET(NVPTX)
CUVIL_ABSENT_TARGET(PowerPC)
CUVIL_ABSENT_TARGET(RISCV)
CUVIL_ABSENT_TARGET(Sparc)
CUVIL_ABSENT_TARGET(SystemZ)
CUVIL_ABSENT_TARGET(VE)
CUVIL_ABSENT_TARGET(WebAssembly)
CUVIL_ABSENT_TARGET(XCore)
CUVIL_ABSENT_TARGET(Xtensa)
