const lineBytes = 64
const linesPerBlock = 1024
const blockBytes = lineBytes * linesPerBlock

/** The size of the sample device's configuration backup (bytes): large enough to show streaming. */
export const backupBytes: number = 64 * blockBytes

/** A part of the backup: first and last byte, both included, as in `Content-Range`. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/** The bytes of the backup within `range`, generated on demand. */
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
 * Parses a `Range` field (RFC 9110 §14.2). Anything other than one range counts as absent, which the clause allows. The response
 * to `unsatisfiable` is 416.
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
