const lineBytes = 64
const linesPerBlock = 1024
const blockBytes = lineBytes * linesPerBlock

/** The size of the sample device's configuration backup, in bytes: large enough to see it stream. */
export const backupBytes: number = 64 * blockBytes

/** A part of the backup, both ends included, as `Content-Range` counts. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/** The bytes of the backup within `range`, made while they are read: the device never holds the whole of it. */
export function* backupContent(range: ByteRange): Generator<Buffer> {
  for (let block = Math.floor(range.first / blockBytes); block * blockBytes <= range.last; block++) {
    const offset = block * blockBytes
    const bytes = makeBlock(block * linesPerBlock)
    yield bytes.subarray(Math.max(0, range.first - offset), Math.min(blockBytes, range.last + 1 - offset))
  }
}

function makeBlock(firstLine: number): Buffer {
  let text = ''
  for (let line = firstLine; line < firstLine + linesPerBlock; line++) {
    const setting = `${String(line).padStart(7, '0')} set outlet ${(line % 8) + 1} delay ${(line * 7919) % 3600}`
    text += `${setting.padEnd(lineBytes - 1)}\n`
  }
  return Buffer.from(text, 'latin1')
}

/**
 * Reads a `Range` field (RFC 9110 §14.2). One range only; anything else counts as absent, which the clause allows.
 * `unsatisfiable` asks for a 416.
 */
export function parseRange(field: string | undefined, size: number): ByteRange | 'absent' | 'unsatisfiable' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(field ?? '')
  if (!match) return 'absent'
  const [, from = '', to = ''] = match
  if (from === '' && to === '') return 'absent'
  if (from === '') {
    const length = Math.min(Number(to), size)
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 }
  }
  const first = Number(from)
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== '' && Number(to) < first) return 'absent'
  return first >= size ? 'unsatisfiable' : { first, last }
}
