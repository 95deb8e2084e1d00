import { DeviceFault } from './failure.ts'

/** The size, before an extension or the blanks that some firmware pads it with. */
const SIZE_LINE = /^[ \t]*([0-9a-f]{1,12})[ \t]*(?:;[^\n]*)?\r*$/i
const LONGEST_SIZE_LINE = 4096
const CR = 0x0d
const LF = 0x0a
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/**
 * Rewrites a chunked body whose line ends are bare LF, or missing behind the data, so that every parser finds the
 * same chunks in it. Node's lenient one takes most of that, but never sees the end of `0 LF LF`. The chunk of size
 * zero is the end: trailers go nowhere, and neither does what follows.
 */
export interface ChunkMender {
  /** What to hand on for these bytes. Fails where no chunk begins. */
  mend(bytes: Buffer): Buffer
}

export function createChunkMender(): ChunkMender {
  let state: 'line' | 'data' | 'after-data' | 'over' = 'line'
  let line = ''
  let left = 0

  /** Takes the line that says how long the next chunk is; gives what of `bytes` follows it. */
  function takeSize(bytes: Buffer, mended: Buffer[]): Buffer {
    const end = bytes.indexOf(LF)
    line += bytes.toString('latin1', 0, end < 0 ? bytes.length : end)
    if (line.length > LONGEST_SIZE_LINE) throw new DeviceFault('http_protocol_error')
    if (end < 0) return bytes.subarray(bytes.length)
    const size = SIZE_LINE.exec(line)?.[1]
    if (size === undefined) throw new DeviceFault('http_protocol_error')
    line = ''
    left = Number.parseInt(size, 16)
    state = left === 0 ? 'over' : 'data'
    if (left === 0) mended.push(LAST_CHUNK)
    return bytes.subarray(end + 1)
  }

  function skipLineEnd(bytes: Buffer): Buffer {
    let at = 0
    while (bytes[at] === CR) at += 1
    if (at === bytes.length) return bytes.subarray(at)
    state = 'line'
    return bytes.subarray(bytes[at] === LF ? at + 1 : at)
  }

  return {
    mend(bytes) {
      const mended: Buffer[] = []
      let rest = bytes
      while (rest.length > 0 && state !== 'over') {
        if (state === 'line') rest = takeSize(rest, mended)
        else if (state === 'after-data') rest = skipLineEnd(rest)
        else {
          const piece = rest.subarray(0, left)
          mended.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
          rest = rest.subarray(piece.length)
          left -= piece.length
          if (left === 0) state = 'after-data'
        }
      }
      return Buffer.concat(mended)
    },
  }
}
