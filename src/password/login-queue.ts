import { createHmac, randomBytes, randomInt } from 'node:crypto'
import { prefix48 } from '../http/ip.ts'
import type { Clock } from '../system/clock.ts'
import { type Precedence, WeightedTurns } from './weighted-turns.ts'

interface LoginBounds {
  /** The most passwords that are verified at the same time. The caller may change it. */
  readonly inside: number
  /** The most verifications that wait. */
  readonly waiting: number
  /** How long a login waits (ms): as long as eight verifications take, within these two. */
  readonly wait: { readonly least: number; readonly most: number }
}

/** An unknown client has at least one turn of eight (`WeightedTurns`), so a login waits for that many turns, on a slow machine, too. */
const TURNS = 8

/** Registers a listener for the end of the request of a login. */
export type OnEnd = (listener: () => void) => void

interface Job {
  /** The key of the client. */
  readonly client: string
  readonly password: string
  /** Names what the password is compared with. Logins with the same `against` and password share one run. */
  readonly against: string
}

/** One run of a verification, for all logins that wait for it. */
interface SharedRun<R> {
  readonly key: string
  readonly verify: () => Promise<R>
  readonly logins: Set<Login<R>>
}

interface Login<R> {
  readonly client: string
  readonly address: string
  readonly wanted: SharedRun<R>
  readonly settle: (result: Promise<R> | 'overloaded') => void
}

/**
 * The logins whose passwords wait to be verified. At most `bounds.inside` are verified at a time, in the order of `WeightedTurns`.
 *
 * Logins that wait for the same verification share one run, which begins as soon as one of them gets a turn. Each login keeps its own
 * deadline, and may leave without the others. No login joins a run that has begun: the shorter wait would tell its client that another
 * client uses the same password now.
 *
 * @param random from 0 to below 1
 */
export function createLoginQueue<R>(
  clock: Pick<Clock, 'after' | 'monotonic'>,
  bounds: LoginBounds,
  precedence: Precedence,
  random: () => number = () => randomInt(2 ** 32) / 2 ** 32,
) {
  const turns = new WeightedTurns<Login<R>>(precedence, random)
  const secret = randomBytes(32)
  /** The runs that have not begun, by key. */
  const waiting = new Map<string, SharedRun<R>>()
  /** The verifications that run, in the order in which they began. */
  const running = new Set<{ readonly began: number }>()
  /** How long the last verification took (ms). */
  let took = 0

  function begin({ verify }: Pick<SharedRun<R>, 'verify'>): Promise<R> {
    const run = { began: clock.monotonic() }
    running.add(run)
    return verify().finally(() => {
      running.delete(run)
      took = clock.monotonic() - run.began
      fill()
    })
  }

  /** How long a login may wait (ms), by the last verification and the oldest that runs: the first logins have no last one to go by. */
  function longestWait(): number {
    const now = clock.monotonic()
    const [{ began } = { began: now }] = running
    const { least, most } = bounds.wait
    return Math.min(most, Math.max(least, TURNS * Math.max(took, now - began)))
  }

  /** Begins verifications while fewer than `bounds.inside` run. */
  function fill(): void {
    while (running.size < bounds.inside) {
      const next = turns.next()
      if (next === undefined) return
      end(next.wanted, begin(next.wanted))
    }
  }

  function end({ logins }: SharedRun<R>, result: Promise<R> | 'overloaded'): void {
    for (const login of logins) login.settle(result)
  }

  function leave(login: Login<R>): void {
    const { logins, key } = login.wanted
    turns.leave(login)
    logins.delete(login)
    if (logins.size === 0) waiting.delete(key)
  }

  /** Waits until `wanted` has run; `overloaded` if the wait is too long or the request ends. */
  function wait(client: string, wanted: SharedRun<R>, onEnd: OnEnd | undefined): Promise<R | 'overloaded'> {
    return new Promise((resolve) => {
      const login: Login<R> = {
        client,
        address: prefix48(client),
        wanted,
        settle(result) {
          timer.cancel()
          leave(login)
          resolve(result)
        },
      }
      const giveUp = (): void => login.settle('overloaded')
      const began = clock.monotonic()
      const judge = (): void => {
        const left = began + longestWait() - clock.monotonic()
        if (left <= 0) giveUp()
        else timer = clock.after(left, judge)
      }
      let timer = clock.after(bounds.wait.least, judge)
      waiting.set(wanted.key, wanted)
      wanted.logins.add(login)
      turns.join(login)
      onEnd?.(giveUp)
    })
  }

  /** Refuses the run with the smallest share if the queue is too long. That may be the new run. */
  function makeRoom(): void {
    if (waiting.size <= bounds.waiting) return
    let least: { readonly wanted: SharedRun<R>; readonly share: number } | undefined
    // The latest run comes first, so it is refused among runs with the same share.
    for (const wanted of [...waiting.values()].reverse()) {
      const share = shareUpTo(least?.share ?? Number.POSITIVE_INFINITY, wanted)
      if (share < (least?.share ?? Number.POSITIVE_INFINITY)) least = { wanted, share }
    }
    if (least !== undefined) end(least.wanted, 'overloaded')
  }

  /** The share of a run, or any value from `most` on: the sum stops there, so a run with thousands of logins costs little. */
  function shareUpTo(most: number, { logins }: SharedRun<R>): number {
    let share = 0
    for (const login of logins) {
      share += turns.shareOf(login)
      if (share >= most) break
    }
    return share
  }

  return {
    /** Runs `verify` in its turn. `overloaded`: too many other logins wait, the wait was too long, or the request has ended. */
    enter(
      { client, password, against }: Job,
      verify: () => Promise<R>,
      onEnd?: OnEnd,
    ): Promise<R | 'overloaded'> {
      fill()
      if (running.size < bounds.inside) return begin({ verify })
      // A keyed digest, so that the map holds no passwords.
      const key = `${against} ${createHmac('sha256', secret).update(password).digest('base64')}`
      const settled = wait(client, waiting.get(key) ?? { key, verify, logins: new Set() }, onEnd)
      makeRoom()
      return settled
    },
  }
}
