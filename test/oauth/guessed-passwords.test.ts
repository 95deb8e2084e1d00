import { expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { revocable } from '../../src/compose/open-login-history.ts'
import type { LoginHistory } from '../../src/oauth/login-history.ts'
import { derive } from '../../src/password/key-derivation.ts'
import type { Revocation } from '../../src/tokens/revocation.ts'
import type { Tokens } from '../../src/tokens/token-store.ts'
import { passUntil } from '../support/clock.ts'
import type { Response } from '../support/message.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** A hash of `PASSWORD` that takes some milliseconds more than others: argon2id, `m=19456,t=8`. */
async function costlyHash(): Promise<string> {
  const [salt, memory, passes] = [Buffer.alloc(16), 19_456, 8]
  const parameters = { memory, passes, parallelism: 1, salt, tag: Buffer.alloc(32) }
  const tag = await derive({ kind: 'argon2id', ...parameters }, PASSWORD)
  const text = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=1$${text(salt)}$${text(tag)}`
}

const config = { listen: { trusted_proxies: ['127.0.0.1'] } }

/** A login through the proxy, of this client. */
const logIn = (sidecar: TestSidecar, client: string, password: string): Promise<Response> =>
  sidecar.postToken({ grant_type: 'password', password }, { fields: ['X-Forwarded-For', client] })

// With other crowds of clients, and how long each waits: see login-crowds.
it('C26 beside 300 addresses that guess, a client that has logged in before does not wait for them, over real sockets', async () => {
  const sidecar = await startSidecar({ config, password: await costlyHash() })
  expect((await logIn(sidecar, '203.0.113.1', PASSWORD)).status).toBe(200)
  const counts = { wrong: 0, refused: 0 }
  const full = Promise.withResolvers<void>()
  const guesses = Array.from({ length: 300 }, async (_each, i) => {
    const { status } = await logIn(sidecar, `198.51.${100 + (i % 3)}.${Math.floor(i / 3)}`, `wrong ${i}`)
    if (status === 400) counts.wrong += 1
    if (status === 500) counts.refused += 1
    // Only a full queue refuses so many.
    if (counts.refused === 150) full.resolve()
  })
  await full.promise
  const before = counts.wrong
  expect((await logIn(sidecar, '203.0.113.1', PASSWORD)).status).toBe(200)
  // The two that were verified when it came, and those that were while its request was on its way.
  expect(counts.wrong - before).toBeLessThan(10)
  // No login waits for longer: what has not begun is refused.
  await passUntil(sidecar.clock, Promise.all(guesses), 30_000)
  expect(counts.wrong + counts.refused).toBe(300)
  const refusals = (reason: string) => sidecar.metric('postern_refusals_total', { reason })
  expect([await refusals('logins_overloaded'), await refusals('overloaded')]).toEqual([counts.refused, 0])
})

it('H158 guessed passwords are logged once with the addresses, and are an alarm, in status and in a metric', async () => {
  const sidecar = await startSidecar({ config })
  for (let i = 0; i < 52; i += 1) {
    const client = i % 16 === 0 ? `2001:db8:1:${i}::1` : `198.51.100.${i % 16}`
    expect((await logIn(sidecar, client, 'wrong')).status).toBe(400)
  }
  const lines = sidecar.logLines().filter((line) => line.includes('passwords are being guessed'))
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({
      level: 40,
      wrong: 21,
      addresses: 16,
      from: expect.arrayContaining(['2001:db8:1::/48', '198.51.100.1']),
    }),
  ])
  const alarm = {
    name: 'PosternPasswordGuessing',
    what: expect.stringMatching(/^52 wrong passwords from 16 addresses \(most from /),
    remedy: expect.stringContaining('listen.allow'),
  }
  expect(sidecar.overview.condition().alarms).toContainEqual(expect.objectContaining(alarm))
  const status = await control(`${sidecar.directory}/state`, { method: 'GET', path: '/status' })
  expect(status).toMatchObject({ alarms: expect.arrayContaining([expect.objectContaining(alarm)]) })
  expect(await sidecar.metric('postern_guessing_addresses')).toBe(16)
  expect(sidecar.logLines().join()).not.toContain('"wrong":52')
})

it('C26 an operator who revokes tells the history of logins before the store', () => {
  const told: (Revocation | string)[] = []
  const revoke: Tokens['revoke'] = () => told.push('store')
  // Only this member of the history is used.
  const history = { revoked: (which: Revocation) => told.push(which) } as unknown as LoginHistory
  void revocable({ revoke }, history).revoke({ name: 'monitor' }, 'operator')
  expect(told).toEqual([{ name: 'monitor' }, 'store'])
})
