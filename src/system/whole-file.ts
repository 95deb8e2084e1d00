import type { Stats } from 'node:fs'
import { constants, open, stat } from 'node:fs/promises'

/** A file that is no file with text of a reasonable size: a FIFO, a device, a folder, or one that is too large. */
export class OddFile extends Error {}

/** The largest certificate, key, secret or configuration (bytes). */
export const LARGEST_FILE = 1024 * 1024

/**
 * Reads a file of at most `limit` bytes. Rejects with `OddFile`, or with the error of the system.
 * The read does not block. A FIFO without a writer would block a thread of Node's pool for ever, and four of them would stop all
 * file access of the process.
 */
export async function readWholeFile(path: string, limit = LARGEST_FILE): Promise<Buffer> {
  // Before it is opened, because a writer that waits for the reader of a FIFO would take this for one.
  requireFile(await stat(path))
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    requireFile(await handle.stat())
    const bytes = Buffer.allocUnsafe(limit + 1)
    let length = 0
    while (length <= limit) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length)
      if (bytesRead === 0) return bytes.subarray(0, length)
      length += bytesRead
    }
    throw new OddFile(`it is larger than ${limit / 1024} KiB`)
  } finally {
    await handle.close()
  }
}

function requireFile(found: Stats): void {
  if (!found.isFile()) throw new OddFile(found.isDirectory() ? 'it is a folder' : 'it is not a regular file')
}
