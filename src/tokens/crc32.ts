/** One entry for each value of a byte, of the polynomial of ISO 3309 with its bits reversed. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** CRC-32 of a text in UTF-8, as `node:zlib` has it: that module takes 2 ms of a start, for nothing else. */
export function crc32(text: string): number {
  let value = 0xffffffff
  for (const byte of Buffer.from(text)) value = (TABLE[(value ^ byte) & 0xff] ?? 0) ^ (value >>> 8)
  return (value ^ 0xffffffff) >>> 0
}
