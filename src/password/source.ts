import { isUtf8 } from 'node:buffer'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import { watchFile } from '../system/file-watch.ts'
import { explainPathError, readWholeFile } from '../system/named-file.ts'
import { codeOf, isBug, SetupError } from '../system/setup-error.ts'
import { fingerprintOf } from './key-derivation.ts'
import { type Credential, parseStoredLine } from './stored-line.ts'

/** Where a password is: the only line of a file, or the line of one user in an htpasswd or shadow file. */
export interface PasswordPlace {
  readonly file: string
  readonly user?: string
}

/** What the source holds now. */
export type SourceContent = { readonly line: string; readonly credential: Credential } | Unusable

/** Why what was read cannot be used. */
interface Unusable {
  /** May be logged: it never quotes the file. */
  readonly reason: string
  /** What to do about a file that cannot be read; undefined for one that is missing or holds no usable line. */
  readonly remedy?: string | undefined
}

const SINGLE_LINE_LIMIT = 64 * 1024
const TABLE_LIMIT = 1024 * 1024

/** Reads and parses the source. A source that cannot be used is a result, not an error, so a running sidecar continues. */
export async function readSource({ file, user }: PasswordPlace): Promise<SourceContent> {
  const line = user === undefined ? await readOnlyLine(file) : await readUsersField(file, user)
  if (typeof line !== 'string') return line
  const credential = parseStoredLine(line, user === undefined)
  return typeof credential === 'string' ? { reason: credential } : { line, credential }
}

/** Reads the only line of a file, without its line end. */
export async function readOnlyLine(file: string): Promise<string | Unusable> {
  const text = await readText(file, SINGLE_LINE_LIMIT)
  if (typeof text !== 'string') return text
  const line = text.replace(/\r?\n$/, '')
  return /[\r\n]/.test(line) ? { reason: 'it has several lines, and must have exactly one' } : line
}

/** The field after the user name. The first entry of that user counts, as for Apache and login. */
async function readUsersField(file: string, user: string): Promise<string | Unusable> {
  const text = await readText(file, TABLE_LIMIT)
  if (typeof text !== 'string') return text
  for (const entry of text.split(/\r?\n/)) {
    const [name, field = ''] = entry.split(':', 2)
    if (name === user && entry.includes(':')) return field
  }
  return { reason: `it has no user ${JSON.stringify(user)}` }
}

/** Reads at most `limit` bytes of a file, as text. */
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

/** Called when the source changes while the sidecar runs. */
export interface PasswordSourceEvents {
  /** A different password is valid from now on: revoke every token issued for the earlier one (C8). */
  changed(): void
  /** The source cannot be used; the last good password stays valid. Called once per distinct reason, which names the file. */
  unreadable(reason: string): void
  /** The source can be used again. If its password is different, `changed` follows. */
  restored(): void
}

export interface PasswordSourceState {
  readonly readable: boolean
  readonly reason?: string | undefined
  /** When the file was last changed (wall clock, ms); undefined if that is unknown. */
  readonly changedAt?: number | undefined
}

/** A password in a file, which is watched for changes. */
export type PasswordSource = Awaited<ReturnType<typeof openPasswordSource>>

/** Time between two reads that must agree (ms): a file that is still being written is not used. */
const SETTLE = 75

interface Dependencies {
  readonly clock: Clock
  readonly events: Partial<PasswordSourceEvents>
  /** The configuration key of the file. */
  readonly key: string
  /** Why a password cannot be verified by this credential; undefined if it can. */
  readonly obstacle: (credential: Credential) => string | undefined
}

/** Opens the source and watches it. Rejects with `SetupError` if it cannot be used now; later failures are events. */
export async function openPasswordSource(
  place: PasswordPlace,
  { clock, events, key, obstacle }: Dependencies,
) {
  const { file, user } = place
  const named = (reason: string): string => `password file ${file}: ${reason}`

  const read = async (): Promise<SourceContent> => {
    const content = await readSource(place)
    const reason = 'reason' in content ? undefined : obstacle(content.credential)
    return reason === undefined ? content : { reason }
  }

  const first = await read()
  if ('reason' in first) {
    const remedy =
      user === undefined
        ? `postern hash-password > ${file} writes a usable one`
        : `correct the path, or the entry of ${user} in the file`
    throw new SetupError(`${file}: ${first.reason}`, { key, remedy: first.remedy ?? remedy })
  }

  let current = first
  let problem: string | undefined
  let closed = false
  let changedAt = await changeOf(file)

  const isNews = (content: SourceContent): boolean =>
    !isSame(content, problem === undefined ? current : { reason: problem })

  const apply = (content: SourceContent): void => {
    if ('reason' in content) {
      problem = content.reason
      events.unreadable?.(named(content.reason))
      return
    }
    const wasUnusable = problem !== undefined
    const isDifferent = content.line !== current.line
    problem = undefined
    // Before the events: once the tokens are revoked, the earlier password must not log anybody in.
    current = content
    if (wasUnusable) events.restored?.()
    if (isDifferent) events.changed?.()
  }

  const reread = async (): Promise<void> => {
    // Not awaited: a new password must not wait for it.
    void changeOf(file).then((at) => {
      changedAt = at
    })
    let content = await read()
    while (!closed && isNews(content)) {
      await delay(SETTLE, undefined, { ref: false })
      const again = await read()
      if (closed) return
      if (isSame(content, again)) return apply(again)
      content = again
    }
  }

  const watch = watchFile(file, clock, reread)

  return {
    /** The password that is valid now: its line in the file, and what the line says. */
    get current(): { readonly line: string; readonly credential: Credential } {
      return current
    },
    /** The fingerprint of the line in the file: see `fingerprintOf`. */
    fingerprint: (salt: Uint8Array): Promise<string> => fingerprintOf(current.line, salt),
    state: (): PasswordSourceState => ({
      readable: problem === undefined,
      reason: problem && named(problem),
      changedAt,
    }),
    close(): void {
      closed = true
      watch.close()
    },
  }
}

async function changeOf(file: string): Promise<number | undefined> {
  const found = await stat(file).catch(() => undefined)
  return found === undefined ? undefined : Math.round(found.mtimeMs)
}

function isSame(one: SourceContent, other: SourceContent): boolean {
  if ('reason' in one || 'reason' in other)
    return 'reason' in one && 'reason' in other && one.reason === other.reason
  return one.line === other.line
}
