const SHT_GNU_VERNEED = 0x6ffffffe
const SECTION_HEADER = 64

/**
 * The shared libraries that a 64-bit little-endian ELF program loads, each with the versions of its symbols that the program uses:
 * `libc.so.6` with `GLIBC_2.28` and others. It is what `readelf --version-info` prints.
 */
export function elfNeeds(program: Buffer): ReadonlyMap<string, readonly string[]> {
  const table = Number(program.readBigUInt64LE(0x28))
  const count = program.readUInt16LE(0x3c)
  const section = (index: number): Section => {
    const header = program.subarray(table + index * SECTION_HEADER, table + (index + 1) * SECTION_HEADER)
    const start = Number(header.readBigUInt64LE(0x18))
    return {
      type: header.readUInt32LE(4),
      link: header.readUInt32LE(0x28),
      entries: header.readUInt32LE(0x2c),
      bytes: program.subarray(start, start + Number(header.readBigUInt64LE(0x20))),
    }
  }
  const needs = Array.from({ length: count }, (_, index) => section(index)).find(
    ({ type }) => type === SHT_GNU_VERNEED,
  )
  if (needs === undefined) throw new Error('the program names no versions of its libraries')
  return readNeeds(needs, section(needs.link).bytes)
}

interface Section {
  readonly type: number
  /** The index of the section with the names. */
  readonly link: number
  readonly entries: number
  readonly bytes: Buffer
}

/** Entries are `Verneed` of elf.h, each with a list of `Vernaux`. */
function readNeeds({ bytes, entries }: Section, names: Buffer): Map<string, readonly string[]> {
  const name = (offset: number): string => names.toString('latin1', offset, names.indexOf(0, offset))
  const needs = new Map<string, readonly string[]>()
  let entry = 0
  for (let i = 0; i < entries; i++) {
    const versions: string[] = []
    let version = entry + bytes.readUInt32LE(entry + 8)
    for (let left = bytes.readUInt16LE(entry + 2); left > 0; left--) {
      versions.push(name(bytes.readUInt32LE(version + 8)))
      version += bytes.readUInt32LE(version + 12)
    }
    needs.set(name(bytes.readUInt32LE(entry + 4)), versions)
    entry += bytes.readUInt32LE(entry + 12)
  }
  return needs
}
