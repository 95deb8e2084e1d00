import { nameOfGrant } from '../http/scope.ts'
import type { PasswordSourceState } from '../password/source.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { TokenKind } from './grant-rules.ts'

/** Where events are told. */
export interface Outlets {
  readonly log: Logger
  readonly metrics: Metrics
}

/** Events of this sidecar. With a shared store, each sidecar reports only its own operations. */
export interface TokenEvents {
  /** A token response was made for this grant type. */
  issued(grantType: string): void
  /**
   * @param grants how many were revoked
   * @param ids of the revoked grants; with a shared store perhaps only some of them
   */
  revoked(grants: number, reason: string, ids?: readonly string[]): void
  evicted(kind: TokenKind, count: number): void
}

/** The most grants that a line of the log names. */
export const MOST_LISTED = 100

/** Counts and logs what happens to tokens. */
export function tokenEvents({ log, metrics }: Outlets): TokenEvents {
  return {
    issued: metrics.tokensIssued,
    revoked(grants, reason, ids) {
      metrics.tokensRevoked(reason, grants)
      log.warn({ grants, reason, ...namesOf(ids), ids: ids?.slice(0, MOST_LISTED) }, 'tokens revoked')
    },
    evicted(kind, count) {
      metrics.tokensEvicted(kind, count)
      log.warn({ kind, count }, 'tokens evicted: the store is full, see tokens.capacity')
    },
  }
}

/** The names in the ids of these grants, for a line of the log. */
function namesOf(ids: readonly string[] = []): { readonly names?: readonly string[] } {
  const names = [...new Set(ids.map(nameOfGrant))].filter((name) => name !== '')
  return names.length === 0 ? {} : { names }
}

const UNANSWERED =
  'the password hook gives no answer: logins get 500, and tokens stay valid; postern check asks it, too'
const UNFOLLOWED =
  'the password hook gives no fingerprint: tokens stay valid when the password changes; see password.socket'

const NO_PASSWORD = 'there is no password: logins are refused, and the tokens of the earlier one have ended'

/** Logs and counts at the start that names have no password. */
export function reportAbsent({ log, metrics }: Outlets, { absent }: PasswordSourceState): void {
  if (absent === undefined) return
  metrics.storeFailed('password', 'absent')
  log.error({ reason: absent }, NO_PASSWORD)
}

/**
 * Counts and logs what happens to the password source. Call it once for a source.
 *
 * @param onChanged revokes the tokens of a name that has another password, or is new; empty for `password`
 */
export function sourceEvents(
  { log, metrics, onPasswordRead }: Outlets & { readonly onPasswordRead: () => void },
  onChanged: (name: string) => void,
) {
  metrics.storeOpened('password', ['read', 'absent'])
  return {
    added(name: string): void {
      onChanged(name)
      onPasswordRead()
    },
    changed(name = ''): void {
      onChanged(name)
      log.warn(name === '' ? {} : { name }, 'the password has changed')
      onPasswordRead()
    },
    absent(name: string, reason: string): void {
      onChanged(name)
      metrics.storeFailed('password', 'absent')
      log.error({ ...(name === '' ? {} : { name }), reason }, NO_PASSWORD)
      onPasswordRead()
    },
    unreadable(reason: string): void {
      metrics.storeFailed('password', 'read')
      log.error({ reason }, 'the password source cannot be used; the last good password stays valid')
    },
    restored(): void {
      log.info('the password source can be used again')
      onPasswordRead()
    },
    unanswered(reason: string, isNew: boolean): void {
      metrics.storeFailed('password', 'read')
      if (isNew) log.error({ reason }, UNANSWERED)
    },
    unfollowed: (): void => log.warn(UNFOLLOWED),
    ambiguous: (names: readonly string[]): void =>
      log.error({ names }, 'several names have the same password, which logs nobody in; change one of them'),
  }
}
