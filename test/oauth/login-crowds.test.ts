import { describe, expect, it } from 'vitest'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { parseCidr } from '../../src/http/ip.ts'
import { createLoginHistory } from '../../src/oauth/login-history.ts'
import { slowLogins } from '../../src/oauth/slow-logins.ts'
import { createLoginQueue } from '../../src/password/login-queue.ts'
import { nextTurn } from '../../src/system/clock.ts'
import type { LogInResult } from '../../src/tokens/issuing.ts'
import { stillClock } from '../support/clock.ts'

// Logins in virtual time: the queue and the history of logins, with a hash that takes as long as the test says.

const SECOND = 1_000
const MINUTE = 60 * SECOND
const RIGHT = 'right'

/** The same numbers in each run. */
function random(): () => number {
  let state = 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** @param hash how long a verification takes (ms) */
function start(hash: number, wrongPasswords: 'off' | 'slow' = 'off') {
  const proxies = [parseCidr('192.0.2.0/24') ?? expect.fail()]
  const clientOf = createClientAddress(proxies)
  const clock = stillClock()
  const told: string[] = []
  const history = createLoginHistory({
    clock,
    settings: { gate: { scopes: undefined }, config: { tokens: { refreshLifetime: 7 * 24 * 60 * MINUTE } } },
    onGuessing: () => told.push('guessing'),
    onCrowded: () => told.push('crowded'),
    onBug: (error) => told.push(String(error)),
  })
  const bounds = { inside: 2, waiting: 64, wait: { least: 5 * SECOND, most: 30 * SECOND } }
  const queue = createLoginQueue<boolean>(clock, bounds, history, random())
  let hashes = 0
  let grants = 0
  const recorded = history.recorded(
    async (password, { client }) => {
      const verify = async (): Promise<boolean> => {
        hashes += 1
        await clock.pause(hash)
        return password === RIGHT
      }
      const right = await queue.enter({ client: client.key, password, against: '' }, verify)
      if (right === 'overloaded') return right
      grants += 1
      const issued = { grant: `g${grants}`, accessToken: 'a', refreshToken: 'r', expiresIn: 60 }
      return right ? issued : 'wrong'
    },
    { recentGrants: () => ({ total: 0, grants: [] }) },
  )
  const config = { limits: { wrongPasswords, maxKeys: 100_000 } }
  const bodyTimeout = 10 * SECOND
  const logIn = slowLogins(recorded, { clock, settings: { config, bodyTimeout }, history, onSlowed() {} })
  /** A login through the proxy, from this address. */
  const from = (address: string, password: string): Promise<LogInResult> =>
    logIn(password, { client: clientOf('192.0.2.7', [address]), answered: false, onEnd() {} }, 'password')

  return {
    history,
    told,
    hashes: () => hashes,
    from,
    /** Logs in and asks again a second later, as `Retry-After` says, until it succeeds. How long that took (ms). */
    async timeOf(address: string): Promise<number> {
      const began = clock.monotonic()
      while (!isRight(await from(address, RIGHT))) await clock.pause(SECOND)
      return clock.monotonic() - began
    },
    /** Sends different wrong passwords at this rate a minute, for a time. */
    attack(addressOf: (i: number) => string, perMinute: number, time: number): void {
      const every = MINUTE / perMinute
      let i = 0
      const next = (): void => {
        void from(addressOf(i), `wrong ${i}`)
        i += 1
        if (i * every < time) clock.after(every, next)
      }
      next()
    },
    /** Time passes when what was sent has begun. */
    async pass(ms: number): Promise<void> {
      await nextTurn()
      await clock.advance(ms)
    },
  }
}

function isRight(result: LogInResult): boolean {
  return typeof result === 'object' && 'accessToken' in result
}

type Site = ReturnType<typeof start>

const CROWDS: readonly [string, (site: Site, time: number) => void][] = [
  [
    '300 addresses with 28 wrong passwords a minute each',
    (site, time) => site.attack((i) => `198.51.${100 + (i % 3)}.${Math.floor(i / 3) % 100}`, 300 * 28, time),
  ],
  [
    '65,000 /64s of one /48',
    (site, time) => site.attack((i) => `2001:db8:1:${(i % 65_000).toString(16)}::1`, 65_000, time),
  ],
]

describe.each(CROWDS)('C26 beside %s', (_what, attack) => {
  it.each([
    [300, 'off'],
    [50, 'slow'],
  ] as const)(
    'a client that has logged in before waits for the running hash only, at %d ms with wrong_passwords: %s',
    async (hash, wrongPasswords) => {
      const site = start(hash, wrongPasswords)
      const before = site.timeOf('203.0.113.1')
      await site.pass(hash)
      await before
      attack(site, 15 * SECOND)
      const times: number[] = []
      for (let i = 0; i < 14; i += 1) {
        await site.pass(SECOND + 7 * i)
        void site.timeOf('203.0.113.1').then((time) => times.push(time))
      }
      await site.pass(2 * hash)
      expect(times).toHaveLength(14)
      expect(Math.max(...times)).toBeLessThanOrEqual(2 * hash)
    },
  )

  it('a new client logs in within ten seconds, nine times of ten, also while a hash takes 300 ms', async () => {
    const site = start(300)
    attack(site, 60 * SECOND)
    const times: number[] = []
    for (let i = 0; i < 30; i += 1) {
      await site.pass(1.5 * SECOND)
      void site.timeOf(`203.0.113.${i}`).then((time) => times.push(time))
    }
    await site.pass(10 * SECOND)
    expect(times.filter((time) => time <= 10 * SECOND).length).toBeGreaterThanOrEqual(27)
  })
})
