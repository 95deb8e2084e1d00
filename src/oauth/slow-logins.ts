import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../http/admission.ts'
import { prefix64 } from '../http/ip.ts'
import { nameOfGrant, type Scopes } from '../http/scope.ts'
import { findWindow } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { LogIn, Tokens } from '../tokens/state.ts'
import type { FormSettings } from './form-request.ts'

/** After this time (ms) without an attempt, the wrong passwords of a client are forgotten. */
const MEMORY = 600_000
/** Milliseconds. */
const FIRST_WAIT = 250
const LONGEST_WAIT = 30_000

/** `free` wrong passwords cause no wait. It doubles each time that `step` more were wrong. */
const OF_CLIENT = { free: 4, step: 1 }
/** An attacker with many addresses passes the bound by client. Clients that only mistype share this one with it, so it rises slowly. */
const OF_ALL = { free: 50, step: 25 }
/** One wrong password of all clients is forgotten in each such time (ms): a script with an old password must not slow everyone. */
const FORGOTTEN = 12_000

/** The most attempts that wait at once. Each holds its connection and its form, some kilobytes. */
const MOST_WAITING = 1_000

/** The attempts of one client. Times on the monotonic clock (ms). */
class Guesses {
  /** Attempts that were wrong, or are not verified yet. */
  wrong = 0
  /** When they are forgotten. */
  closesAt = 0
  /** When the password of the latest attempt is verified; if that was refused, when the next one may be. */
  latest = 0
  /** The latest attempt was refused. The next one does not wait beyond `latest`, because it has waited already. */
  owed = false
  /** The verification of the latest attempt. */
  verified: Promise<unknown> = Promise.resolve()
}

const waitAfter = (wrong: number, { free, step }: typeof OF_CLIENT): number =>
  wrong < free ? 0 : Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.floor((wrong - free) / step))

interface SlowLoginDependencies {
  readonly clock: Clock
  /** A reload replaces what it holds. */
  readonly settings: FormSettings & {
    readonly gate: { readonly scopes: Scopes | undefined }
    readonly config: {
      readonly limits: { readonly wrongPasswords: 'off' | 'slow'; readonly maxKeys: number }
    }
  }
  readonly grants: Tokens['grants']
  /** An attempt has to wait. */
  readonly onSlowed: () => void
}

/**
 * Makes guessing slower with `limits.wrong_passwords: slow`: an attempt waits before its password is verified. The wait doubles with each
 * wrong password of its client, and more slowly with those of all clients. An attempt that would wait for longer than
 * `listen.body_timeout` is refused. `Retry-After` says when the client may try again, so a right password is never locked out.
 *
 * - An attempt counts from its beginning: a client gains nothing by attempts at the same time, which are verified one by one.
 * - A waiting attempt holds no place for hashing.
 * - A client with a live grant does not wait for the wrong passwords of others. A right password ends the wait of its client. Both hold only
 *   for names without `allow`: a password that may do little must not help to guess another one.
 * - Clients are kept as windows are (C17): at most `limits.max_keys`, and all further ones count together.
 */
export function slowLogins(
  logIn: LogIn,
  { clock, settings, grants, onSlowed }: SlowLoginDependencies,
): LogIn {
  const clients = new Map<string, Guesses>()
  const others = new Guesses()
  const all = { wrong: 0, at: 0 }
  let waiting = 0
  /** The clients with a live grant, and when they were read. */
  let known: Promise<ReadonlySet<string>> = Promise.resolve(new Set())
  let readAt = Number.NEGATIVE_INFINITY

  async function readGrants(): Promise<ReadonlySet<string>> {
    const live = await grants()
    const found = live === 'unavailable' ? [] : live.filter(({ id }) => isUnlimited(id))
    return new Set(found.map(({ client }) => prefix64(client)))
  }

  /** Reads the grants at most once a second: many attempts must not make it costly. If a shared store does not respond, there are none. */
  async function hasGrant({ key }: Client): Promise<boolean> {
    const now = clock.monotonic()
    if (now - readAt >= 1_000) {
      readAt = now
      known = readGrants()
    }
    return (await known).has(key)
  }

  /** Whether the name of a grant has no `allow`. */
  function isUnlimited(grant = ''): boolean {
    const { scopes } = settings.gate
    const scope = scopes?.get(nameOfGrant(grant))
    return scopes === undefined || (scope !== undefined && scope.allows === undefined)
  }

  function guessesOf(key: string, now: number): Guesses {
    const found = findWindow(clients, key, now, settings.config.limits.maxKeys)
    if (found === 'overflow') {
      if (others.closesAt <= now) others.wrong = 0
      return others
    }
    const guesses = found === 'new' ? new Guesses() : found
    // At the end of the map, because it is forgotten last: see `findWindow`.
    clients.delete(key)
    clients.set(key, guesses)
    return guesses
  }

  /** How long (ms) this client waits for the wrong passwords of all. */
  async function waitForAll(client: Client): Promise<number> {
    const now = clock.monotonic()
    all.wrong = Math.max(0, all.wrong - (now - all.at) / FORGOTTEN)
    all.at = now
    const time = waitAfter(all.wrong, OF_ALL)
    return time > 0 && (await hasGrant(client)) ? 0 : time
  }

  return async (password, client, grantType) => {
    const { limits, listen } = settings.config
    if (limits.wrongPasswords === 'off') return logIn(password, client, grantType)
    const guesses = guessesOf(client.key, clock.monotonic())
    const ofAll = await waitForAll(client)
    const now = clock.monotonic()
    const pace = guesses.owed ? 0 : Math.max(waitAfter(guesses.wrong, OF_CLIENT), ofAll)
    const start = Math.max(now, guesses.latest) + pace
    const delay = start - now
    guesses.latest = start
    guesses.closesAt = start + MEMORY
    guesses.owed = delay > 0 && (delay > listen.bodyTimeout || waiting >= MOST_WAITING)
    if (guesses.owed) return { slowedFor: delay }
    guesses.wrong += 1
    all.wrong += 1
    if (delay > 0) {
      onSlowed()
      waiting += 1
      await wait(delay, undefined, { ref: false })
      waiting -= 1
    }
    const attempt = guesses.verified.then(() => logIn(password, client, grantType))
    guesses.verified = attempt.catch(() => {})
    const result = await attempt
    if (result === 'wrong') return result
    all.wrong = Math.max(0, all.wrong - 1)
    const forgives = typeof result === 'object' && 'accessToken' in result && isUnlimited(result.grant)
    guesses.wrong = forgives ? 0 : Math.max(0, guesses.wrong - 1)
    return result
  }
}
