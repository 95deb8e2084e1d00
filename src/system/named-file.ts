import { lstatSync, type Stats, statSync } from 'node:fs'
import { constants, open, stat } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import { certificatesIn } from './pem.ts'
import { codeOf, isBug, isWithheld, reasonOf, SetupError } from './setup-error.ts'

/** The reason why a file, a folder or an address cannot be used, and the remedy for the operator. Each is a clause. */
export interface Fault {
  readonly reason: string
  readonly remedy: string | undefined
}

const LET_READ = 'let the user that runs Postern read it and search its folder'
const LET_WRITE = 'make the folder writable for the user that runs Postern, or name another one'

/** Explains why a path could not be read or written. No other function puts a file error of the system into words. */
export function explainPathError(error: unknown, path: string, use: 'read' | 'write' = 'read'): Fault {
  if (isWithheld(error)) {
    const [reason = '', remedy] = reasonOf(error).split('; ')
    return { reason, remedy }
  }
  if (error instanceof OddFile) return { reason: error.message, remedy: 'name another file' }
  const code = codeOf(error)
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'EEXIST':
      return absent(path, use)
    case 'EACCES':
    case 'EPERM':
      return use === 'read'
        ? { reason: 'permission to read it is denied', remedy: LET_READ }
        : { reason: `${presentPart(fromRoot(path)).path} is not writable (${code})`, remedy: LET_WRITE }
    case 'EISDIR':
      return { reason: 'it is a folder', remedy: 'name the file in it' }
    case 'EROFS':
      return { reason: 'the file system is read-only', remedy: 'mount it writable, or name another folder' }
    case 'ENOSPC':
      return { reason: 'the disk is full', remedy: 'make room, or name another folder' }
    case '':
      return { reason: reasonOf(error), remedy: undefined }
    default:
      return { reason: `it cannot be ${use === 'read' ? 'read' : 'written'} (${code})`, remedy: undefined }
  }
}

/** Explains a missing path. If it is relative, the reason names the working directory, which depends on how Postern was started. */
function absent(path: string, use: 'read' | 'write'): Fault {
  const whole = fromRoot(path)
  const present = presentPart(whole)
  if (present.isBrokenLink) {
    return {
      reason: `${present.path} is a link to nothing`,
      remedy: 'correct the link, or name another path',
    }
  }
  if (!present.isFolder) {
    return { reason: `${present.path} is not a folder`, remedy: 'move it away, or name another folder' }
  }
  if (use === 'write') {
    return { reason: `nothing can be created in ${present.path}`, remedy: 'name another folder' }
  }
  const from = path === whole ? '' : ` (the working directory is ${resolve('.')})`
  return { reason: `there is no such file${from}`, remedy: 'create the file, or correct the path' }
}

/** The absolute path, in which `..` stays: the kernel follows a link before it, and demands a folder there. */
export function fromRoot(path: string): string {
  return isAbsolute(path) ? path : `${resolve('.')}/${path}`
}

interface PresentPart {
  readonly path: string
  readonly isFolder: boolean
  /** It is a link whose target does not exist. */
  readonly isBrokenLink?: boolean
}

/** The longest part of an absolute path that exists. A link to nothing exists: nothing can be created in its place. */
export function presentPart(path: string): PresentPart {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found !== undefined) return { path, isFolder: found.isDirectory() }
    const above = presentPart(dirname(path))
    const isLink = above.isFolder && lstatSync(path, { throwIfNoEntry: false }) !== undefined
    return isLink ? { path, isFolder: false, isBrokenLink: true } : above
  } catch (error) {
    if (isBug(error)) throw error
    // The error does not tell what exists, so the path counts as present.
    return { path, isFolder: true }
  }
}

/**
 * Reads a file that a configuration key or a flag names. Rejects with a `SetupError` with reason and remedy.
 *
 * @param remedy the remedy for a missing file; default: create the file, or correct the path
 */
export async function readNamedFile(key: string, path: string, remedy?: string): Promise<Buffer> {
  return readWholeFile(path).catch((cause: unknown) => {
    if (isBug(cause)) throw cause
    const fault = explainPathError(cause, path)
    const isAbsent = ['ENOENT', 'ENOTDIR'].includes(codeOf(cause))
    throw new SetupError(`cannot read ${path}: ${fault.reason}`, {
      key,
      cause,
      remedy: isAbsent ? (remedy ?? fault.remedy) : fault.remedy,
    })
  })
}

/**
 * Reads a file with one line of UTF-8 text, such as a password, and returns it without the line end. Rejects with a `SetupError`, which
 * never quotes the text.
 */
export async function readSecretLine(key: string, path: string): Promise<string> {
  const bytes = await readNamedFile(key, path)
  const text = bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .replace(/\r?\n$/, '')
  if (text === '' || [...text].some((each) => each < ' ' || each === '\x7f' || each === '\ufffd')) {
    throw new SetupError(`${path} must hold one line of text in UTF-8`, { key })
  }
  return text
}

/**
 * Reads the CA certificates (PEM) against which a server is verified. Rejects a file without certificates: OpenSSL would take it for an
 * empty list of CAs and trust no server.
 */
export async function readAuthorities(key: string, path: string): Promise<string> {
  const text = (await readNamedFile(key, path)).toString('utf8')
  const found = certificatesIn({ path, text })
  if (typeof found === 'string') {
    throw new SetupError(found, {
      key,
      remedy: 'name a PEM file with the certificate of the server or its authority',
    })
  }
  return text
}

/** The path is not a text file of reasonable size: it is a FIFO or a device, or the file is too large. */
class OddFile extends Error {}

/** The largest certificate, key, secret or configuration (bytes). */
export const LARGEST_FILE = 1024 * 1024

/**
 * Reads a file of at most `limit` bytes. Rejects with `OddFile`, or with the error of the system. The read does not block: a FIFO without a
 * writer would block a thread of Node's pool forever, and four of them would stop all file access of the process.
 */
export async function readWholeFile(path: string, limit = LARGEST_FILE): Promise<Buffer> {
  // The check comes before `open`, because to open a FIFO wakes a writer that waits for a reader.
  requireFile(await stat(path))
  await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  requireFile(await handle.stat())
  const bytes = Buffer.allocUnsafe(limit + 1)
  let length = 0
  while (length <= limit) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length)
    if (bytesRead === 0) return bytes.subarray(0, length)
    length += bytesRead
  }
  throw new OddFile(`it is larger than ${limit / 1024} KiB`)
}

function requireFile(found: Stats): void {
  // The same error as the system's for the read of a folder.
  if (found.isDirectory()) throw Object.assign(new Error('it is a folder'), { code: 'EISDIR' })
  if (!found.isFile()) throw new OddFile('it is not a regular file')
}
