import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, reasonOf, SetupError } from '../../system/setup-error.ts'

export interface JunitFile {
  /** Writes the document, once, and closes the file. Rejects with a `SetupError` with exit code 1 if that fails. */
  write(xml: string): Promise<void>
}

/** The files that the run reads, by flag. */
export type Inputs = Readonly<Record<string, string | undefined>>

/**
 * Opens and empties the file before the run, so that a wrong path costs none. It never waits, as it would for the reader of a FIFO.
 * Rejects with a `SetupError` with exit code 2, also for a file that the run reads, under whatever path: it would be overwritten.
 */
export async function openJunitFile(path: string, inputs: Inputs): Promise<JunitFile> {
  if (path === '') throw new SetupError('--junit: the name of the file is empty')
  const file = await openForWriting(path)
  try {
    await empty(file, path, inputs)
  } catch (error) {
    await file.close()
    throw error
  }
  return {
    async write(xml) {
      await writeAndClose(file, xml).catch((error: unknown) => {
        const remedy = 'the file has no result, but the lines above are right'
        throw new SetupError(cannotWrite(path, reasonOf(error)), { exitCode: 1, remedy, cause: error })
      })
    },
  }
}

async function openForWriting(path: string): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_NONBLOCK } = constants
  try {
    return await open(path, O_WRONLY | O_CREAT | O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENXIO') throw oddFile(path)
    throw new SetupError(cannotWrite(path, reasonOf(error)), {
      remedy: 'name a file in a folder that exists and is yours',
      cause: error,
    })
  }
}

async function empty(file: FileHandle, path: string, inputs: Inputs): Promise<void> {
  const found = await file.stat()
  if (found.isCharacterDevice()) return
  if (!found.isFile()) throw oddFile(path)
  for (const [flag, input] of Object.entries(inputs)) {
    if (input !== undefined && isSame(found, await stat(input))) {
      throw new SetupError(
        `--junit: ${path} is the file of ${flag}, which the result would overwrite; name another`,
      )
    }
  }
  await file.truncate()
}

function isSame(one: Stats, other: Stats): boolean {
  return one.dev === other.dev && one.ino === other.ino
}

function oddFile(path: string): SetupError {
  return new SetupError(cannotWrite(path, 'it is neither a regular file nor a terminal'), {
    remedy: 'name a file that exists or can be created',
  })
}

async function writeAndClose(file: FileHandle, text: string): Promise<void> {
  try {
    await writeAll(file, Buffer.from(text))
  } finally {
    await file.close()
  }
}

/** How long to wait for a terminal that takes no more text for now (ms). */
const BUSY = 20

async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += (await file.write(bytes, written)).bytesWritten
    } catch (error) {
      if (codeOf(error) !== 'EAGAIN') throw error
      await sleep(BUSY)
    }
  }
}

function cannotWrite(path: string, reason: string): string {
  return `--junit: cannot write ${path}: ${reason}`
}
