import { isUtf8 } from 'node:buffer'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { type Clock, everySecond } from '../system/clock.ts'
import { watchFile } from '../system/file-watch.ts'
import { explainPathError, readWholeFile } from '../system/named-file.ts'
import { codeOf, isBug, SetupError } from '../system/setup-error.ts'
import { type Absent, accountIn } from './account.ts'
import { fingerprintOf } from './key-derivation.ts'
import { type Credential, parseStoredLine } from './stored-line.ts'

/** Where a password is: the only line of a file, or the line of one user in an htpasswd or shadow file. */
export interface PasswordLocation {
  readonly file: string
  readonly user?: string
  /** Whether the file is a shadow file, whose entries have dates. */
  readonly shadow?: boolean
}

/** A password that can be verified. */
interface Present {
  readonly line: string
  readonly credential: Credential
  /** When the account expires (wall clock, ms); undefined if it does not. */
  readonly until?: number | undefined
}

/** What the source holds now. */
export type SourceContent = Present | Absent | Unusable

/** Why what was read cannot be used. */
interface Unusable {
  /** May be logged: it never quotes the file. */
  readonly reason: string
  /** What to do about a file that cannot be read; undefined for one that is missing or holds no usable line. */
  readonly remedy?: string | undefined
}

const SINGLE_LINE_LIMIT = 64 * 1024
const TABLE_LIMIT = 1024 * 1024

/**
 * Reads and parses the source. A source that cannot be used is a result, not an error, so a running sidecar continues.
 *
 * @param wall the present time (ms since the Unix epoch), by which an account has expired; without it none has
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

/** Whether a start fails because the only source has no such user: the file or the name is probably wrong. */
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
  /** There is no password any more: revoke every token issued for the earlier one (C8). `reason` names the file. */
  absent(reason: string): void
  /** The source cannot be used; the last good password stays valid. Called once per distinct reason, which names the file. */
  unreadable(reason: string): void
  /** The source can be used again. If its password is different, `changed` follows. */
  restored(): void
}

export interface PasswordSourceState {
  readonly readable: boolean
  readonly reason?: string | undefined
  /** Why there is no password: the account is locked, has expired or is gone. Undefined if there is one. */
  readonly absent?: string | undefined
  /** When the file was last changed (wall clock, ms); undefined if that is unknown. */
  readonly changedAt?: number | undefined
}

/** A password in a file, which is watched for changes. */
export type PasswordSource = Awaited<ReturnType<typeof openPasswordSource>>

/** Time between two reads that must agree (ms): a file that is still being written is not used. */
const SETTLE = 75
/** How many reads in a row must agree that a user is gone: that is two seconds, in which a writer would have written the entry. */
const READS_UNTIL_GONE = 27

interface Dependencies {
  readonly clock: Clock
  readonly events: Partial<PasswordSourceEvents>
  /** The configuration key of the file. */
  readonly key: string
  /** Why a password cannot be verified by this credential; undefined if it can. */
  readonly obstacle: (credential: Credential) => string | undefined
  /** Whether there is another source, so that the start may go on when this one has no such user. */
  readonly isOneOfSeveral: boolean
}

/**
 * Opens the source and watches it. Rejects with `SetupError` if it cannot be used now; later failures are events. An account that is locked
 * or has expired does not reject: it has no password, which the tokens of an earlier run have to learn.
 */
export async function openPasswordSource(
  location: PasswordLocation,
  { clock, events, key, obstacle, isOneOfSeveral }: Dependencies,
) {
  const { file, user } = location
  const named = (reason: string): string => `password file ${file}: ${reason}`

  const read = async (): Promise<SourceContent> => {
    const content = await readSource(location, clock.wall())
    const reason = 'credential' in content ? obstacle(content.credential) : undefined
    return reason === undefined ? content : { reason }
  }

  const first = await read()
  if ('reason' in first || endsStart(first, isOneOfSeveral)) {
    const remedy =
      user === undefined
        ? `postern hash-password > ${file} writes a usable one`
        : `correct the path, or the entry of ${user} in the file`
    const { reason, remedy: better } = 'reason' in first ? first : { reason: first.absent, remedy: undefined }
    throw new SetupError(`${file}: ${reason}`, { key, remedy: better ?? remedy })
  }

  let current: Present | Absent = first
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
    const isDifferent = lineOf(content) !== lineOf(current)
    problem = undefined
    // Before the events: once the tokens are revoked, the earlier password must not log anybody in.
    current = content
    if (wasUnusable) events.restored?.()
    if (!isDifferent) return
    if ('absent' in content) events.absent?.(named(content.absent))
    else events.changed?.()
  }

  const reread = async (): Promise<void> => {
    // Not awaited: a new password must not wait for it.
    void changeOf(file).then((at) => {
      changedAt = at
    })
    let content = await read()
    let reads = 1
    while (!closed && isNews(content)) {
      await delay(SETTLE, undefined, { ref: false })
      const again = await read()
      if (closed) return
      reads = isSame(content, again) ? reads + 1 : 1
      content = again
      if (reads >= ('absent' in again && again.isGone ? READS_UNTIL_GONE : 2)) return apply(again)
    }
  }

  let turn = Promise.resolve()
  const look = (): Promise<void> => {
    turn = turn.then(reread)
    return turn
  }
  const watch = watchFile(file, clock, look)
  /** The wall clock a second ago (ms). An account expires without a change of its file, and is valid again when a wrong clock is set back. */
  let looked = clock.wall()
  const seconds = everySecond(() => {
    const now = clock.wall()
    const isDue = 'credential' in current && current.until !== undefined && now >= current.until
    const isSetBack = 'absent' in current && now < looked
    looked = now
    if (isDue || isSetBack) void look()
  })

  return {
    /** The password that is valid now: its line in the file, and what the line says; undefined if there is none. */
    get current(): { readonly line: string; readonly credential: Credential } | undefined {
      return 'credential' in current ? current : undefined
    },
    /** The fingerprint of the line in the file: see `fingerprintOf`. Without a password it is that of an empty line, which is no password. */
    fingerprint: (salt: Uint8Array): Promise<string> => fingerprintOf(lineOf(current), salt),
    state: (): PasswordSourceState => ({
      readable: problem === undefined,
      reason: problem && named(problem),
      absent: 'absent' in current ? named(current.absent) : undefined,
      changedAt,
    }),
    close(): void {
      closed = true
      watch.close()
      seconds.close()
    },
  }
}

async function changeOf(file: string): Promise<number | undefined> {
  const found = await stat(file).catch(() => undefined)
  return found === undefined ? undefined : Math.round(found.mtimeMs)
}

/** The line of the password; empty if there is none. */
function lineOf(content: Present | Absent): string {
  return 'credential' in content ? content.line : ''
}

function isSame(one: SourceContent, other: SourceContent): boolean {
  if ('credential' in one && 'credential' in other)
    return one.line === other.line && one.until === other.until
  if ('absent' in one && 'absent' in other) return one.absent === other.absent
  return 'reason' in one && 'reason' in other && one.reason === other.reason
}
