import { isUtf8 } from 'node:buffer'
import { explainPathError, readWholeFile } from '../system/named-file.ts'
import { codeOf, isBug } from '../system/setup-error.ts'
import { type Credential, parseStoredLine } from './stored-line.ts'
import { type Absent, accountIn } from './user-account.ts'

/** Where a password is: the only line of a file, or the line of one user in an htpasswd or shadow file. */
export interface PasswordLocation {
  readonly file: string
  readonly user?: string
  /** Whether the file is a shadow file, whose entries have dates. */
  readonly shadow?: boolean
}

/** A password that can be verified. */
export interface Present {
  readonly line: string
  readonly credential: Credential
  /** When the account expires (wall clock, ms); undefined if it does not. */
  readonly until?: number | undefined
}

/** The result of a read of the source. */
export type SourceContent = Present | Absent | Unusable

/** Why the content of the source cannot be used. */
interface Unusable {
  /** May be logged: it never quotes the file. */
  readonly reason: string
  /** The remedy for a file that cannot be read; undefined for a file that is missing or has no usable line. */
  readonly remedy?: string | undefined
}

const SINGLE_LINE_LIMIT = 64 * 1024
const TABLE_LIMIT = 1024 * 1024

/**
 * Reads and parses the source. A source that cannot be used is a result, not an error, so a running sidecar continues.
 *
 * @param wall the present time (ms since the Unix epoch), which decides whether an account has expired; left out: no account has
 */
export async function readSource(location: PasswordLocation, wall?: number): Promise<SourceContent> {
  const { file, user, shadow = false } = location
  if (user === undefined) {
    const line = await readOnlyLine(file)
    return typeof line === 'string' ? contentOf(line, true) : line
  }
  const text = await readText(file, TABLE_LIMIT)
  if (typeof text !== 'string') return text
  const found = accountIn(text, user, shadow, wall)
  return 'field' in found ? { ...contentOf(found.field, false), until: found.until } : found
}

/** Whether the start must fail because the only source has no such user: the file or the name is probably wrong. */
export function endsStart(content: Present | Absent, isOneOfSeveral: boolean): content is Absent {
  return 'absent' in content && content.isGone && !isOneOfSeveral
}

function contentOf(line: string, plainAllowed: boolean): Present | Unusable {
  const credential = parseStoredLine(line, plainAllowed)
  return typeof credential === 'string' ? { reason: credential } : { line, credential }
}

/** Reads the only line of a file, without its line end. */
export async function readOnlyLine(file: string): Promise<string | Unusable> {
  const text = await readText(file, SINGLE_LINE_LIMIT)
  if (typeof text !== 'string') return text
  const line = text.replace(/\r?\n$/, '')
  return /[\r\n]/.test(line) ? { reason: 'it has several lines, and must have exactly one' } : line
}

/** Reads a file of at most `limit` bytes, as UTF-8. */
async function readText(file: string, limit: number): Promise<string | Unusable> {
  try {
    const bytes = await readWholeFile(file, limit)
    // `TextDecoder` drops a byte order mark, which Windows editors add and which is not part of the password.
    return isUtf8(bytes) ? new TextDecoder().decode(bytes) : { reason: 'it is not valid UTF-8' }
  } catch (error) {
    if (isBug(error)) throw error
    const { reason, remedy } = explainPathError(error, file)
    return { reason, remedy: codeOf(error) === 'ENOENT' ? undefined : remedy }
  }
}

/** The line of the password; empty if there is none. */
export function lineOf(content: Present | Absent): string {
  return 'credential' in content ? content.line : ''
}

/** Whether two reads of a source have the same result. */
export function isSameContent(one: SourceContent, other: SourceContent): boolean {
  if ('credential' in one && 'credential' in other)
    return one.line === other.line && one.until === other.until
  if ('absent' in one && 'absent' in other) return one.absent === other.absent
  return 'reason' in one && 'reason' in other && one.reason === other.reason
}
