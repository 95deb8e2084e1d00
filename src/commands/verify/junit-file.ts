import { type FileHandle, open } from 'node:fs/promises'
import { reasonOf } from '../../system/node-permission.ts'
import { SetupError } from '../../system/setup-error.ts'

/** The file of `--junit`. */
export interface JunitFile {
  /** Writes the document, once, and closes the file. Rejects with a `SetupError` with exit code 1 if that fails. */
  write(xml: string): Promise<void>
}

/** Opens and empties the file before the run, so that a wrong path costs none. Rejects with a `SetupError` with exit code 2. */
export async function openJunitFile(path: string): Promise<JunitFile> {
  const file = await open(path, 'w').catch((error: unknown) => {
    throw new SetupError(cannotWrite(path, error), {
      remedy: 'name a file in a folder that exists and is yours',
      cause: error,
    })
  })
  return {
    async write(xml) {
      await writeAndClose(file, xml).catch((error: unknown) => {
        const remedy = 'the file has no result, but the lines above are right'
        throw new SetupError(cannotWrite(path, error), { exitCode: 1, remedy, cause: error })
      })
    },
  }
}

async function writeAndClose(file: FileHandle, text: string): Promise<void> {
  try {
    await file.writeFile(text)
  } finally {
    await file.close()
  }
}

function cannotWrite(path: string, error: unknown): string {
  return `--junit: cannot write ${path}: ${reasonOf(error)}`
}
