import { isUtf8 } from 'node:buffer'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { isWithheld, reasonOf } from '../system/node-permission.ts'
import { codeOf } from '../system/setup-error.ts'
import type { Credential } from './stored-line.ts'
import { parseStoredLine } from './stored-line.ts'

/** Where the password stands: a file of one line, or one user's line in Apache's or the system's format. */
export type PasswordSourceConfig =
  | { readonly file: string }
  | { readonly htpasswd: TableEntry }
  | { readonly shadow: TableEntry }

interface TableEntry {
  readonly file: string
  readonly user: string
}

/** What a look at the source gave. The reason is fit for a log: it never quotes the file. */
export type Reading =
  | { readonly kind: 'line'; readonly line: string; readonly credential: Credential }
  | { readonly kind: 'trouble'; readonly reason: string }

const SINGLE_LINE_LIMIT = 64 * 1024
const TABLE_LIMIT = 1024 * 1024

/** The path that is read, and watched. */
export function sourcePath(config: PasswordSourceConfig): string {
  if ('file' in config) return config.file
  return 'htpasswd' in config ? config.htpasswd.file : config.shadow.file
}

/** Reads and understands the source. Whatever is wrong with it is a value, so that a running sidecar can go on. */
export async function readSource(config: PasswordSourceConfig): Promise<Reading> {
  const single = 'file' in config
  const whole = await readText(sourcePath(config), single ? SINGLE_LINE_LIMIT : TABLE_LIMIT)
  if (whole.kind === 'trouble') return whole
  const stored = single
    ? onlyLine(whole.text)
    : usersField(whole.text, 'htpasswd' in config ? config.htpasswd : config.shadow)
  if (stored.kind === 'trouble') return stored
  const parsed = parseStoredLine(stored.text, single)
  if (parsed.kind === 'unusable') return trouble(parsed.reason)
  return { kind: 'line', line: stored.text, credential: parsed.credential }
}

type Text = { readonly kind: 'text'; readonly text: string } | (Reading & { readonly kind: 'trouble' })

function onlyLine(text: string): Text {
  const line = text.replace(/\r?\n$/, '')
  return /[\r\n]/.test(line)
    ? trouble('it has several lines, and must have exactly one')
    : { kind: 'text', text: line }
}

/** The field after the name; the first entry counts, as it does for Apache and for login. */
function usersField(text: string, { user }: TableEntry): Text {
  for (const entry of text.split(/\r?\n/)) {
    const [name, field = ''] = entry.split(':', 2)
    if (name === user && entry.includes(':')) return { kind: 'text', text: field }
  }
  return trouble(`it has no user ${JSON.stringify(user)}`)
}

async function readText(file: string, limit: number): Promise<Text> {
  let handle: FileHandle | undefined
  try {
    // Without O_NONBLOCK, a FIFO in the file's place would hold the open, and a thread, for ever.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!(await handle.stat()).isFile()) return trouble('it is not a regular file')
    const bytes = Buffer.allocUnsafe(limit + 1)
    let length = 0
    while (length <= limit) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length)
      if (bytesRead === 0) return decoded(bytes.subarray(0, length))
      length += bytesRead
    }
    return trouble(`it is larger than ${limit / 1024} KiB`)
  } catch (error) {
    if (codeOf(error) === '') throw error
    return trouble(explained(error))
  } finally {
    await handle?.close()
  }
}

/** A byte order mark, which editors on Windows put there, is no part of the password. */
function decoded(bytes: Uint8Array): Text {
  if (!isUtf8(bytes)) return trouble('it is not valid UTF-8')
  return { kind: 'text', text: new TextDecoder().decode(bytes) }
}

const EXPLANATIONS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EACCES', 'permission to read it is denied'],
])

function explained(error: unknown): string {
  if (isWithheld(error)) return reasonOf(error)
  const code = codeOf(error)
  return EXPLANATIONS.get(code) ?? `it can't be read (${code})`
}

function trouble(reason: string): Reading & { readonly kind: 'trouble' } {
  return { kind: 'trouble', reason }
}
