import { nameOfGrant, namesInText } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import {
  classifySpent,
  endOfGrant,
  type Lifetimes,
  lifetimeOf,
  type Spent,
  type TokenPolicy,
} from './grant-rules.ts'
import type { GrantTable, Token } from './grant-table.ts'
import type { Digest } from './mint.ts'

/**
 * Why an existing file is not used: it is damaged, from a newer version, or from another program. `unread`: it could not be opened at the
 * start, so its tokens have missed the revocations since.
 */
export type Fault = 'damaged' | 'newer' | 'foreign' | 'unread'

/** A token on disk. Times are on the wall clock (ms). */
export interface TokenRecord {
  readonly digest: Digest
  readonly grant: string
  /** The address of the client that logged in. */
  readonly client: string
  /** The time of the login. */
  readonly granted: number
  readonly kind: 'access' | 'refresh'
  readonly issued: number
  readonly expires: number
  /** When a rotated refresh token was spent. */
  readonly spent: number | null
  /** When its grace ends; null for a token that is not spent. */
  readonly graceEnd: number | null
  /** Of an issued grant; null for a login. */
  readonly label: string | null
}

/** The keys of the journal for the fingerprint of the password and for its salt. */
export const FINGERPRINT = 'password_fingerprint'
export const SALT = 'password_salt'

/** The keys of the journal for its own identity (`lastingIdentity`), and for the time when it was found to be a copy (ms, wall clock). */
export const IDENTITY = 'file_identity'
export const COPIED = 'copied_at'

/** The id of a grant with a name. `heir`: the name for an id without one; empty: the id stays without a name. */
function withName(grant: string, heir: string): string {
  return nameOfGrant(grant) === '' && heir !== '' ? `${heir}.${grant}` : grant
}

/**
 * Compares two texts of fingerprints (`textOfNames`). The result says whether a name has a password now and had the same one before. A
 * password without a name in `before` is that of `heir`.
 */
export function comparePasswords(present: string, before: string, heir: string): (name: string) => boolean {
  const [now, then] = [namesInText(present), namesInText(before)]
  const unnamed = then.get('')
  if (unnamed !== undefined) then.set(heir, unnamed)
  return (name) => now.has(name) && now.get(name) === then.get(name)
}

/** What can fail: the values of the `operation` label of `postern_store_errors_total`. */
export const JOURNAL_OPERATIONS = ['open', 'issue', 'revoke', 'expire', 'meta', 'flush', 'close'] as const

export type JournalOperation = (typeof JOURNAL_OPERATIONS)[number]

export interface JournalListener {
  /**
   * The disk failed, and the store continues in memory; after a failed `flush` the file stays in use. Called once for every failed
   * attempt to write, not for every token.
   */
  failed(operation: JournalOperation, error: unknown): void
  /** The disk works again and holds all tokens; after a failed `flush`, durably again. */
  recovered(): void
  /** A file that is not used was renamed to `path`. Its tokens are not valid. */
  setAside(fault: Fault, path: string): void
  /** The file is a copy, which may have tokens that were revoked after it was made. */
  copied(): void
  /**
   * `set`: the wall clock was set, by `ms`. `behind`: the wall clock is `ms` behind the last known time, from which the journal counts on
   * until the clock is set.
   */
  clock(event: 'set' | 'behind', ms: number): void
}

/** The longest time for which a restored token may still be valid (ms), whatever the clock says. */
export function mostLeftOf({ kind, label, issued, expires }: TokenRecord, policy: Lifetimes): number {
  return label === null ? lifetimeOf(kind, policy) : expires - issued
}

/** The latest time in the records at which something happened; 0 without records. */
export function latestOf(stored: readonly TokenRecord[]): number {
  return stored.reduce((last, { issued, spent }) => Math.max(last, issued, spent ?? 0), 0)
}

/**
 * Fills an empty table with the records of the journal. Only the wall clock ran while the process was down, and it may have been set back.
 * So no token gets more time than its own lifetime or the configured one, whichever is shorter (for an issued token: its own). If the wall
 * clock says that a token was spent in the future, the time since then is unknown, and the grace of the token is over. The journal does not
 * record uses, so the grants are in the order in which they last got a token.
 *
 * `areRenamed`: grants have got a name, so the journal must replace their records. `limited`: the tokens that end earlier than their
 * records say, because their login ends. `over`: the tokens that have expired or do not fit, which the journal may forget.
 *
 * @param ahead how far the time of the records is ahead of the monotonic clock (ms): `createLastingClock`
 * @param heir the name for grants without a name; empty: they stay without one
 */
export function restoreGrants(
  table: GrantTable,
  stored: readonly TokenRecord[],
  clock: Clock,
  ahead: number,
  policy: Lifetimes & Pick<TokenPolicy, 'refreshGrace'>,
  heir: string,
): { readonly areRenamed: boolean; readonly limited: ReadonlySet<Token>; readonly over: Digest[] } {
  const at = clock.monotonic()
  const now = Math.floor(at)
  const wall = Math.round(at + ahead)
  const since = (moment: number): number => now - Math.max(0, wall - moment)
  const over: Digest[] = []
  const limited = new Set<Token>()

  function add(record: TokenRecord): void {
    // `grantLifetime` does not apply to an issued grant.
    const ends = record.label === null ? endOfGrant(Math.min(record.granted, wall), policy) : record.expires
    const end = Math.min(record.expires, ends)
    const left = Math.min(end - wall, record.expires - record.issued, mostLeftOf(record, policy))
    if (!(left > 0)) {
      over.push(record.digest)
      return
    }
    const grant =
      table.grant(record.grant) ??
      table.open(record.grant, record.client, since(record.granted), record.label ?? undefined)
    const { kind, digest, issued } = record
    const token = table.add(grant, kind, digest, since(issued), now + left, spentOf(record))
    if (ends < record.expires) limited.add(token)
  }

  function spentOf({ spent: at, graceEnd }: TokenRecord): Spent | undefined {
    if (at === null) return undefined
    const spent = { at, graceEnd: graceEnd ?? wall }
    const graceLeft = spent.graceEnd - wall
    const isOver = classifySpent(spent, clock.wall(), policy.refreshGrace) === 'reuse'
    return { at: since(at), graceEnd: now + (isOver ? Math.min(0, graceLeft) : graceLeft) }
  }

  const inherits = ({ grant }: TokenRecord): boolean => withName(grant, heir) !== grant
  const records = stored.map((each) =>
    inherits(each) ? { ...each, grant: withName(each.grant, heir) } : each,
  )
  records.sort((a, b) => a.issued - b.issued)
  const grants = [...Map.groupBy(records, (record) => record.grant)]
  grants.sort(([, a], [, b]) => (a.at(-1)?.issued ?? 0) - (b.at(-1)?.issued ?? 0))
  for (const [id, tokens] of grants) {
    tokens.forEach(add)
    // Evicts after each grant, so that a smaller capacity evicts whole grants.
    for (const evicted of table.evict(table.grant(id))) over.push(evicted.digest)
  }
  return { areRenamed: stored.some(inherits), limited, over }
}
