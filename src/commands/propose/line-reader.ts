const LINE_FEED = 10

/** Longer than any line of the access log, and it caps what a file without line ends makes the process hold (bytes). */
const LONGEST_LINE = 64 * 1024

/**
 * Calls `take` with each line of a stream, without its end, and `onRead` after each piece with its size (bytes). Holds one line at most;
 * of a longer one than 64 KiB it skips the rest.
 */
export async function readLines(
  stream: AsyncIterable<string | Buffer>,
  take: (line: string) => void,
  onRead: (bytes: number) => void,
): Promise<void> {
  /** The begin of a line whose end has not come; empty while the rest of a line that is too long is skipped. */
  let begun = Buffer.alloc(0)
  let skips = false
  for await (const piece of stream) {
    const bytes = Buffer.from(piece)
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
