import { createLoginHistory, type LoginHistory } from '../oauth/login-history.ts'
import type { GuessSummary } from '../oauth/wrong-passwords.ts'
import type { Logger } from '../record/log.ts'
import { TROUBLES } from '../record/troubles.ts'
import type { Clock } from '../system/clock.ts'
import type { Tokens } from '../tokens/token-store.ts'
import type { Settings } from './settings.ts'

const GUESSING = TROUBLES.PosternPasswordGuessing
const CROWDED =
  'logins are refused, because too many passwords wait beside those that are guessed; clients that have logged in before go first'

/** Remembers the logins of this sidecar, and logs when passwords are guessed. */
export function openLoginHistory(
  log: Logger,
  clock: Clock,
  settings: Settings,
  onBug: (error: unknown) => void,
): LoginHistory {
  const onGuessing = (guesses: GuessSummary): void =>
    log.warn({ ...guesses, remedy: GUESSING.remedy }, GUESSING.line)
  const onCrowded = (guesses: GuessSummary): void => log.warn(guesses, CROWDED)
  return createLoginHistory({ clock, settings, onGuessing, onCrowded, onBug })
}

/** The tokens for operators: a revocation also makes the history forget the clients of the grants. */
export function revocable<T extends Pick<Tokens, 'revoke'>>(tokens: T, history: LoginHistory): T {
  return {
    ...tokens,
    revoke(which, reason) {
      history.revoked(which)
      return tokens.revoke(which, reason)
    },
  }
}
