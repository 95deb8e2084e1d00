import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../http/admission.ts'
import { prefix64 } from '../http/ip.ts'
import { nameOfGrant, type Scopes } from '../http/scope.ts'
import { findWindow } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { LogIn, LogInResult } from '../tokens/state.ts'
import type { Tokens } from '../tokens/token-contract.ts'

/** After this time (ms) without an attempt, wrong passwords are forgotten. */
const MEMORY = 600_000
const FIRST_WAIT = 250
const LONGEST_WAIT = 30_000

/** When the next attempt waits, and after how many more the wait doubles. */
interface Ladder {
  readonly free: number
  readonly step: number
}
/** The fifth wrong password of a client waits. */
const OF_CLIENT: Ladder = { free: 4, step: 1 }
/** Many addresses defeat a bound by address. Clients that mistype share this one with them, so it rises slowly. */
const OF_ALL: Ladder = { free: 50, step: 25 }
/** In this time (ms) one wrong password of all clients is forgotten: otherwise a script with an old password would slow everyone. */
const FORGOTTEN = 12_000

/** How many attempts wait at once: a waiting one holds its connection and its form, some kilobytes. */
const MOST_WAITING = 1_000

/** The attempts of one client, or of all. Times on the monotonic clock (ms). */
interface Guesses {
  /** Attempts that have begun and were not right. */
  wrong: number
  /** When they are forgotten. */
  closesAt: number
  /** When the latest attempt begins, or may begin. */
  latest: number
  /** An attempt was refused, and the next one may begin at `latest`. */
  owed: boolean
  /** The verification of the latest attempt. */
  verified: Promise<unknown>
}

const noGuesses = (): Guesses => ({
  wrong: 0,
  closesAt: 0,
  latest: 0,
  owed: false,
  verified: Promise.resolve(),
})

const waitAfter = (wrong: number, { free, step }: Ladder): number =>
  wrong < free ? 0 : Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.floor((wrong - free) / step))

/** A reload replaces `config`. */
interface SlowLoginSettings {
  readonly gate: { readonly scopes: Scopes | undefined }
  readonly config: {
    readonly limits: { readonly wrongPasswords: 'off' | 'slow'; readonly maxKeys: number }
    readonly listen: { readonly bodyTimeout: number }
  }
}

export interface SlowLoginDependencies {
  readonly clock: Clock
  readonly settings: SlowLoginSettings
  readonly grants: Tokens['grants']
  /** An attempt has to wait. */
  readonly onSlowed: () => void
}

/**
 * Makes guessing slower with `limits.wrong_passwords: slow`: an attempt waits before its password is verified, for a time that doubles with
 * the wrong passwords of its client, and more slowly with those of all clients. A right password is never locked out: an attempt that would
 * wait for longer than `listen.body_timeout` is refused, and the client may begin it at the time that `Retry-After` says.
 *
 * - An attempt counts from its beginning, so attempts at the same time wait for each other: one of a client is verified at a time.
 * - A waiting attempt holds no place for hashing.
 * - A name with `allow` counts for nothing here: neither its right password forgives, nor do its grants spare their client.
 * - Clients are kept as windows are (C17): at most `limits.max_keys`, and all further ones count together.
 */
export function slowLogins(
  logIn: LogIn,
  { clock, settings, grants, onSlowed }: SlowLoginDependencies,
): LogIn {
  const clients = new Map<string, Guesses>()
  const others = noGuesses()
  const all = { wrong: 0, at: 0 }
  let waiting = 0
  /** The clients with a live grant, and when they were read. */
  let known: Promise<ReadonlySet<string>> = Promise.resolve(new Set())
  let readAt = Number.NEGATIVE_INFINITY

  /** Reads the grants at most once a second: an attacker must not make it costly. Without an answer of a shared store, no client has one. */
  async function hasGrant({ key }: Client): Promise<boolean> {
    const now = clock.monotonic()
    if (now - readAt >= 1_000) {
      readAt = now
      known = Promise.resolve(grants()).then(
        (all) =>
          new Set(
            (all === 'unavailable' ? [] : all)
              .filter(({ id }) => isUnlimited(id, settings.gate.scopes))
              .map(({ client }) => prefix64(client)),
          ),
      )
    }
    return (await known).has(key)
  }

  function guessesOf(key: string, now: number): Guesses {
    const found = findWindow(clients, key, now, settings.config.limits.maxKeys)
    if (found === 'overflow') {
      if (others.closesAt <= now) others.wrong = 0
      return others
    }
    const guesses = found === 'new' ? noGuesses() : found
    // Last in the map, because its end is the last: see `findWindow`.
    clients.delete(key)
    clients.set(key, guesses)
    return guesses
  }

  /** Begins an attempt. Returns the time that it waits, or that passes before it may begin (ms). */
  async function begin(guesses: Guesses, client: Client): Promise<{ wait: number } | { refused: number }> {
    const arrived = clock.monotonic()
    all.wrong = Math.max(0, all.wrong - (arrived - all.at) / FORGOTTEN)
    all.at = arrived
    const ofAll = waitAfter(all.wrong, OF_ALL)
    const spared = ofAll === 0 || (await hasGrant(client))
    const now = clock.monotonic()
    const pace = Math.max(waitAfter(guesses.wrong, OF_CLIENT), spared ? 0 : ofAll)
    const start = guesses.owed ? Math.max(now, guesses.latest) : Math.max(now, guesses.latest) + pace
    guesses.closesAt = start + MEMORY
    const delay = start - now
    const patience = settings.config.listen.bodyTimeout
    if (delay > 0 && (delay > patience || waiting >= MOST_WAITING)) {
      guesses.owed = true
      guesses.latest = start
      return { refused: delay }
    }
    guesses.owed = false
    guesses.latest = start
    guesses.wrong += 1
    all.wrong += 1
    return { wait: delay }
  }

  return async (password, client, grantType) => {
    if (settings.config.limits.wrongPasswords === 'off') return logIn(password, client, grantType)
    const guesses = guessesOf(client.key, clock.monotonic())
    const begun = await begin(guesses, client)
    if ('refused' in begun) return { slowedFor: begun.refused }
    if (begun.wait > 0) {
      onSlowed()
      waiting += 1
      await wait(begun.wait, undefined, { ref: false })
      waiting -= 1
    }
    const before = guesses.verified
    const attempt = before.then(() => logIn(password, client, grantType))
    guesses.verified = attempt.catch(() => {})
    const result = await attempt
    if (result === 'wrong') return result
    all.wrong = Math.max(0, all.wrong - 1)
    guesses.wrong = forgives(result, settings.gate.scopes) ? 0 : Math.max(0, guesses.wrong - 1)
    return result
  }
}

function forgives(result: LogInResult, scopes: Scopes | undefined): boolean {
  return typeof result === 'object' && 'accessToken' in result && isUnlimited(result.grant, scopes)
}

/** Whether the name of a grant has no `allow`. One with an `allow` spares nothing: its holder could guess the other passwords faster. */
function isUnlimited(grant = '', scopes: Scopes | undefined): boolean {
  const scope = scopes?.get(nameOfGrant(grant))
  return scopes === undefined || (scope !== undefined && scope.allows === undefined)
}
