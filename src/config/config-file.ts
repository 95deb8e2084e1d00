import { isUtf8 } from 'node:buffer'
import { closeSync, openSync, readSync } from 'node:fs'
import { isWithheld, reasonOf } from '../system/node-permission.ts'
import { codeOf, SetupError } from '../system/setup-error.ts'

/** The text of a configuration file, and the name by which problems point at it. */
export interface ConfigFile {
  readonly path: string
  readonly text: string
}

const LARGEST = 1024 * 1024

/** Reads a configuration file, or throws a `SetupError` that says why it cannot be read. */
export function readConfigFile(path: string): ConfigFile {
  const bytes = readBytes(path)
  if (bytes.length > LARGEST) throw new SetupError(`${path}: is larger than 1 MiB, so it is no configuration`)
  if (!isUtf8(bytes)) throw new SetupError(`${path}: is not UTF-8 text; save it as UTF-8`)
  return { path, text: new TextDecoder().decode(bytes) }
}

/** One byte more than allowed is enough to know; a pipe or /dev/zero never says how long it is. */
function readBytes(path: string): Buffer {
  const buffer = Buffer.alloc(LARGEST + 1)
  try {
    const descriptor = openSync(path, 'r')
    try {
      let length = 0
      for (;;) {
        const read = readSync(descriptor, buffer, length, buffer.length - length, null)
        length += read
        if (read === 0 || length === buffer.length) return buffer.subarray(0, length)
      }
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (codeOf(error) === '') throw error
    throw new SetupError(`${path}: ${reason(error)}`)
  }
}

function reason(error: unknown): string {
  if (isWithheld(error)) return reasonOf(error)
  const code = codeOf(error)
  switch (code) {
    case 'ENOENT':
      return 'there is no such file; name the configuration with --config'
    case 'ENOTDIR':
      return 'there is no such file: a part of the path is no directory'
    case 'EACCES':
    case 'EPERM':
      return 'must be readable by the user that runs Postern'
    case 'EISDIR':
      return 'is a directory; name the file in it'
    default:
      return `cannot be read (${code})`
  }
}
