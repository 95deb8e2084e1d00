import { stat } from 'node:fs/promises'
import { type Clock, rest } from '../system/clock.ts'
import { everySecond } from '../system/every-second.ts'
import { type FileWatch, watchFile } from '../system/file-watch.ts'
import { SetupError } from '../system/setup-error.ts'
import { fingerprintOf } from './key-derivation.ts'
import {
  endsStart,
  isSameContent,
  lineOf,
  type PasswordLocation,
  type Present,
  readSource,
  type SourceContent,
} from './read-source.ts'
import type { Credential } from './stored-line.ts'
import type { Absent } from './user-account.ts'

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

/** The time between two reads that must agree (ms): a file that is still being written is not used. */
const SETTLE = 75
/** The number of reads in a row that must agree that a user is gone. They take two seconds, enough for a program to rewrite the file. */
const READS_UNTIL_GONE = 27

interface Dependencies {
  readonly clock: Clock
  readonly events: Partial<PasswordSourceEvents>
  /** The configuration key of the file. */
  readonly key: string
  /** Why a password cannot be verified by this credential; undefined if it can. */
  readonly obstacle: (credential: Credential) => string | undefined
  /** True if there are other sources: then the start does not fail if this one has no such user. */
  readonly isOneOfSeveral: boolean
}

/**
 * Opens the source and watches it. Rejects with `SetupError` if it cannot be used now; later failures are events. Does not reject for an
 * account that is locked or has expired: the sidecar must start, to revoke the tokens of an earlier run.
 */
export async function openPasswordSource(
  location: PasswordLocation,
  deps: Dependencies,
): Promise<PasswordSource> {
  const { file, user } = location
  const first = await readUsable(location, deps)
  if ('reason' in first || endsStart(first, deps.isOneOfSeveral)) {
    const remedy =
      user === undefined
        ? `postern hash-password > ${file} writes a usable one`
        : `correct the path, or the entry of ${user} in the file`
    const { reason, remedy: better } = 'reason' in first ? first : { reason: first.absent, remedy: undefined }
    throw new SetupError(`${file}: ${reason}`, { key: deps.key, remedy: better ?? remedy })
  }
  return new PasswordSource(location, deps, first, await changeOf(file))
}

/** Reads the source. It is unusable if this process cannot verify its password. */
async function readUsable(
  location: PasswordLocation,
  { clock, obstacle }: Pick<Dependencies, 'clock' | 'obstacle'>,
): Promise<SourceContent> {
  const content = await readSource(location, clock.wall())
  const reason = 'credential' in content ? obstacle(content.credential) : undefined
  return reason === undefined ? content : { reason }
}

/** A password in a file, which is watched for changes. */
export class PasswordSource {
  readonly #location: PasswordLocation
  readonly #deps: Dependencies
  /** The last content that could be used. */
  #content: Present | Absent
  /** Why the content cannot be used now; undefined if it can. */
  #problem: string | undefined
  #changedAt: number | undefined
  /** Resolves when the last read has ended. Reads come one after the other. */
  #turn: Promise<void> = Promise.resolve()
  /** The wall clock a second ago (ms). */
  #secondAgo: number
  #closed = false
  readonly #watch: FileWatch
  readonly #seconds: ReturnType<typeof everySecond>

  constructor(
    location: PasswordLocation,
    deps: Dependencies,
    content: Present | Absent,
    changedAt: number | undefined,
  ) {
    this.#location = location
    this.#deps = deps
    this.#content = content
    this.#changedAt = changedAt
    this.#watch = watchFile(location.file, deps.clock, async () => {
      await this.#look()
      return this.#problem === undefined
    })
    this.#secondAgo = deps.clock.wall()
    this.#seconds = everySecond(deps.clock, () => this.#judgeExpiry())
  }

  /** The password that is valid now: its line in the file, and the parsed line; undefined without a password. */
  get current(): { readonly line: string; readonly credential: Credential } | undefined {
    return 'credential' in this.#content ? this.#content : undefined
  }

  /** The fingerprint of the line in the file (`fingerprintOf`). Without a password: of an empty line, which is never a password. */
  fingerprint(salt: Uint8Array): Promise<string> {
    return fingerprintOf(lineOf(this.#content), salt)
  }

  state(): PasswordSourceState {
    return {
      readable: this.#problem === undefined,
      reason: this.#problem && this.#named(this.#problem),
      absent: 'absent' in this.#content ? this.#named(this.#content.absent) : undefined,
      changedAt: this.#changedAt,
    }
  }

  close(): void {
    this.#closed = true
    this.#watch.close()
    this.#seconds.close()
  }

  /** An account expires without a change of its file, and is valid again when a wrong clock is set back. */
  #judgeExpiry(): void {
    const now = this.#deps.clock.wall()
    const content = this.#content
    const isDue = 'credential' in content && content.until !== undefined && now >= content.until
    const isSetBack = 'absent' in content && now < this.#secondAgo
    this.#secondAgo = now
    if (isDue || isSetBack) void this.#look()
  }

  #look(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#reread())
    return this.#turn
  }

  /** Reads the source until enough reads agree, and applies the result. */
  async #reread(): Promise<void> {
    // Not awaited: a new password must not wait for this time stamp.
    void changeOf(this.#location.file).then((at) => {
      this.#changedAt = at
    })
    let content = await readUsable(this.#location, this.#deps)
    let reads = 1
    while (!this.#closed && this.#isNews(content)) {
      await rest(this.#deps.clock, SETTLE)
      const again = await readUsable(this.#location, this.#deps)
      if (this.#closed) return
      reads = isSameContent(content, again) ? reads + 1 : 1
      content = again
      if (reads >= ('absent' in again && again.isGone ? READS_UNTIL_GONE : 2)) return this.#apply(again)
    }
  }

  #isNews(content: SourceContent): boolean {
    return !isSameContent(content, this.#problem === undefined ? this.#content : { reason: this.#problem })
  }

  #apply(content: SourceContent): void {
    const { events } = this.#deps
    if ('reason' in content) {
      this.#problem = content.reason
      events.unreadable?.(this.#named(content.reason))
      return
    }
    const wasUnusable = this.#problem !== undefined
    const isDifferent = lineOf(content) !== lineOf(this.#content)
    this.#problem = undefined
    // Before the events: once the tokens are revoked, no login with the former password may succeed.
    this.#content = content
    if (wasUnusable) events.restored?.()
    if (!isDifferent) return
    if ('absent' in content) events.absent?.(this.#named(content.absent))
    else events.changed?.()
  }

  #named(reason: string): string {
    return `password file ${this.#location.file}: ${reason}`
  }
}

async function changeOf(file: string): Promise<number | undefined> {
  const found = await stat(file).catch(() => undefined)
  return found === undefined ? undefined : Math.round(found.mtimeMs)
}
