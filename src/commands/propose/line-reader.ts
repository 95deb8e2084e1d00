const LINE_FEED = 10

/** The longest line (bytes). Lines of the access log are shorter. It caps the memory for a file without line ends. */
const LONGEST_LINE = 64 * 1024

/**
 * Calls `take` with each line of a stream, without its line end, and `onRead` after each piece with its size (bytes). A line above
 * `LONGEST_LINE` may be left out.
 */
export async function readLines(
  stream: AsyncIterable<string | Buffer>,
  take: (line: string) => void,
  onRead: (bytes: number) => void,
): Promise<void> {
  /** The beginning of a line whose end has not arrived. Empty while the rest of a line that is too long is skipped. */
  let begun = Buffer.alloc(0)
  let skips = false
  for await (const piece of stream) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    let from = 0
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, from)) {
      const part = bytes.subarray(from, end)
      if (!skips) take((begun.length === 0 ? part : Buffer.concat([begun, part])).toString())
      begun = Buffer.alloc(0)
      skips = false
      from = end + 1
    }
    if (!skips) begun = Buffer.concat([begun, bytes.subarray(from)])
    if (begun.length > LONGEST_LINE) {
      begun = Buffer.alloc(0)
      skips = true
    }
    onRead(bytes.length)
  }
  if (begun.length > 0) take(begun.toString())
}
