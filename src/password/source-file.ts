import { isUtf8 } from 'node:buffer'
import { explainPathError, readWholeFile } from '../system/named-file.ts'
import { codeOf, isBug } from '../system/setup-error.ts'
import { type Credential, parseStoredLine } from './stored-line.ts'

/** Where a password is: the only line of a file, or the line of one user in an htpasswd or shadow file. */
export interface PasswordPlace {
  readonly file: string
  readonly user?: string
}

/** What the source holds now. The reason may be logged: it never quotes the file. */
export type SourceContent =
  | { readonly kind: 'line'; readonly line: string; readonly credential: Credential }
  | Unusable

interface Unusable {
  readonly kind: 'unusable'
  readonly reason: string
  /** What to do about a file that cannot be read; undefined for one that is missing or holds no usable line. */
  readonly remedy?: string | undefined
}

const SINGLE_LINE_LIMIT = 64 * 1024
const TABLE_LIMIT = 1024 * 1024

/** Reads and parses the source. A source that cannot be used is a result, not an error, so a running sidecar continues. */
export async function readSource({ file, user }: PasswordPlace): Promise<SourceContent> {
  const stored = user === undefined ? await readOnlyLine(file) : await readUsersField(file, user)
  if (stored.kind === 'unusable') return stored
  const parsed = parseStoredLine(stored.text, user === undefined)
  if (parsed.kind === 'unusable') return unusable(parsed.reason)
  return { kind: 'line', line: stored.text, credential: parsed.credential }
}

/** What was read; or why it cannot be used, without quoting the file. */
export type Text = { readonly kind: 'text'; readonly text: string } | Unusable

/** Reads the only line of a file, without its line end. */
export async function readOnlyLine(file: string): Promise<Text> {
  const whole = await readText(file, SINGLE_LINE_LIMIT)
  if (whole.kind === 'unusable') return whole
  const line = whole.text.replace(/\r?\n$/, '')
  return /[\r\n]/.test(line)
    ? unusable('it has several lines, and must have exactly one')
    : { kind: 'text', text: line }
}

/** The field after the user name. The first entry of that user counts, as for Apache and login. */
async function readUsersField(file: string, user: string): Promise<Text> {
  const whole = await readText(file, TABLE_LIMIT)
  if (whole.kind === 'unusable') return whole
  for (const entry of whole.text.split(/\r?\n/)) {
    const [name, field = ''] = entry.split(':', 2)
    if (name === user && entry.includes(':')) return { kind: 'text', text: field }
  }
  return unusable(`it has no user ${JSON.stringify(user)}`)
}

/** Reads at most `limit` bytes of a file, as text. */
async function readText(file: string, limit: number): Promise<Text> {
  try {
    return decoded(await readWholeFile(file, limit))
  } catch (error) {
    if (isBug(error)) throw error
    const { reason, remedy } = explainPathError(error, file)
    return { kind: 'unusable', reason, remedy: codeOf(error) === 'ENOENT' ? undefined : remedy }
  }
}

/** `TextDecoder` drops a byte order mark, which Windows editors add and which is not part of the password. */
function decoded(bytes: Uint8Array): Text {
  if (!isUtf8(bytes)) return unusable('it is not valid UTF-8')
  return { kind: 'text', text: new TextDecoder().decode(bytes) }
}

function unusable(reason: string): Unusable {
  return { kind: 'unusable', reason }
}
