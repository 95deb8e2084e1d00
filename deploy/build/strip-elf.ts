/** An entry of the section header table of a 64-bit ELF file: 64 bytes. */
const ENTRY = 64
const SHF_ALLOC = 2n
const SHT_NOBITS = 8

/**
 * Removes the symbols and the debug information of a 64-bit little-endian ELF program: every section that is not loaded into
 * memory. It does what `strip` does for such a program, with the same result on every machine and for every processor.
 * Throws if a loaded section lies behind one that is not loaded.
 */
export function stripElf(program: Buffer): Buffer {
  if (program.readUInt32BE(0) !== 0x7f454c46 || program[4] !== 2 || program[5] !== 1) {
    throw new Error('not a 64-bit little-endian ELF file')
  }
  const [table, count, names] = [
    Number(program.readBigUInt64LE(0x28)),
    program.readUInt16LE(0x3c),
    program.readUInt16LE(0x3e),
  ]
  const sections = Array.from({ length: count }, (_, i) =>
    Buffer.from(program.subarray(table + i * ENTRY, table + (i + 1) * ENTRY)),
  )
  const isLoaded = (section: Buffer): boolean => (section.readBigUInt64LE(8) & SHF_ALLOC) !== 0n
  const end = Math.max(...sections.filter(isLoaded).map(endOf))
  const kept = sections
    .map((section, i) => ({ section, i }))
    .filter(({ section, i }) => i === 0 || i === names || isLoaded(section))
  // A symbol names its section by number, so a loaded section must keep its own.
  if (kept.some(({ section, i }, position) => isLoaded(section) && i !== position)) {
    throw new Error('a loaded section lies behind one that is not loaded')
  }
  const positions = new Map(kept.map(({ i }, position) => [i, position]))
  const nameSection = sections[names]
  if (nameSection === undefined) throw new Error('no section holds the names of the sections')
  const nameText = program.subarray(offsetOf(nameSection), endOf(nameSection))
  nameSection.writeBigUInt64LE(BigInt(end), 0x18)
  for (const { section } of kept) {
    // The link of a section to another one, such as from the dynamic symbols to their names.
    section.writeUInt32LE(positions.get(section.readUInt32LE(0x28)) ?? 0, 0x28)
  }
  const newTable = align(end + nameText.length)
  const stripped = Buffer.alloc(newTable + kept.length * ENTRY)
  program.copy(stripped, 0, 0, end)
  nameText.copy(stripped, end)
  for (const [position, { section }] of kept.entries()) section.copy(stripped, newTable + position * ENTRY)
  stripped.writeBigUInt64LE(BigInt(newTable), 0x28)
  stripped.writeUInt16LE(kept.length, 0x3c)
  stripped.writeUInt16LE(positions.get(names) ?? 0, 0x3e)
  return stripped
}

function offsetOf(section: Buffer): number {
  return Number(section.readBigUInt64LE(0x18))
}

function endOf(section: Buffer): number {
  const size = section.readUInt32LE(4) === SHT_NOBITS ? 0 : Number(section.readBigUInt64LE(0x20))
  return offsetOf(section) + size
}

function align(offset: number): number {
  return Math.ceil(offset / 8) * 8
}
