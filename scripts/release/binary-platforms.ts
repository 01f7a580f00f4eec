/** Processors as ELF, Mach-O and PE name them. */
const ELF_MACHINES = new Map([
  [62, "x64"],
  [183, "arm64"],
]);
const MACH_O_PROCESSORS = new Map([
  [0x0100_0007, "x64"],
  [0x0100_000c, "arm64"],
]);
const PE_MACHINES = new Map([
  [0x8664, "x64"],
  [0xaa64, "arm64"],
]);

const ELF_MAGIC = 0x7f45_4c46;
const ELF_MACHINE_AT = 18;
const MACH_O_MAGIC = 0xcffa_edfe;
const MACH_O_PROCESSOR_AT = 4;
/** Several Mach-O files in one. */
const UNIVERSAL_MAGIC = 0xcafe_babe;
const UNIVERSAL_COUNT_AT = 4;
const UNIVERSAL_FIRST_AT = 8;
const UNIVERSAL_ENTRY_BYTES = 20;
const DOS_MAGIC = 0x4d5a;
const PE_HEADER_AT = 0x3c;
const PE_MACHINE_AT = 4;

/**
 * For which platforms a program or a library is, by its first bytes.
 * @returns names as `<process.platform>-<process.arch>`; none for what is not known
 */
export function binaryPlatforms(bytes: Uint8Array): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = view.getUint32(0);
  if (magic === ELF_MAGIC) return named("linux", [ELF_MACHINES.get(view.getUint16(ELF_MACHINE_AT, true))]);
  if (magic === MACH_O_MAGIC)
    return named("darwin", [MACH_O_PROCESSORS.get(view.getUint32(MACH_O_PROCESSOR_AT, true))]);
  if (magic === UNIVERSAL_MAGIC) {
    const parts = Array.from({ length: view.getUint32(UNIVERSAL_COUNT_AT) }, (_, index) =>
      MACH_O_PROCESSORS.get(view.getUint32(UNIVERSAL_FIRST_AT + index * UNIVERSAL_ENTRY_BYTES)),
    );
    return named("darwin", parts);
  }
  if (view.getUint16(0) === DOS_MAGIC) {
    const header = view.getUint32(PE_HEADER_AT, true);
    return named("win32", [PE_MACHINES.get(view.getUint16(header + PE_MACHINE_AT, true))]);
  }
  return [];
}

function named(platform: string, processors: readonly (string | undefined)[]): string[] {
  return processors.filter((each) => each !== undefined).map((processor) => `${platform}-${processor}`);
}
