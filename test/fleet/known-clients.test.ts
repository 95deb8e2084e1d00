import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { revocable } from '../../src/compose/open-login-history.ts'
import type { State } from '../../src/compose/open-state.ts'
import { openFleet } from '../../src/fleet/open.ts'
import { createLoginHistory } from '../../src/oauth/login-history.ts'
import { createLogOn } from '../../src/record/log.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import type { LogIn } from '../../src/tokens/issuing.ts'
import type { Revocation } from '../../src/tokens/revocation.ts'
import { load } from '../config/sources.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { liveRequests } from '../tokens/live-requests.ts'
import { passing } from './passing.ts'

const WEEK = 7 * 24 * 3_600_000
const [OURS, OTHER] = ['192.0.2.1', '192.0.2.2']

/** All sidecars have one. */
const clock = stillClock()

/** The logins of one sidecar, without HTTP. */
async function openMember(at: string) {
  const passwordFile = join(temporaryDirectory(), 'password')
  writeFileSync(passwordFile, 'the password\n', { mode: 0o600 })
  const sets = [`tokens.store=valkey://${at}`, `password.file=${passwordFile}`]
  const config = load({ sets })
  if (typeof config.tokens.store === 'string') throw new Error('no shared store')
  const onBug = (error: unknown): never => expect.unreachable(String(error))
  const history = createLoginHistory({
    clock,
    settings: { gate: { scopes: undefined }, config: { tokens: { refreshLifetime: WEEK } } },
    onGuessing() {},
    onCrowded() {},
    onBug,
  })
  const { state } = await openFleet(config, config.tokens.store, {
    clock,
    log: createLogOn('silent', { write() {} }),
    metrics: createMetrics({ version: '0', node: '0' }),
    live: liveRequests(),
    hasName: (name) => name === '',
    hashMemory: { limit: Number.POSITIVE_INFINITY, hold() {} },
    precedence: history,
    // So long that a busy machine is not taken for a server that does not reply.
    storeBounds: { timeout: 30_000 },
    onBug,
    onPasswordRead() {},
    onOperatorRevoked: history.revoked,
  })
  closeLater(() => state.close())
  const recorded = history.recorded(state.logIn, { recentGrants: () => ({ total: 0, grants: [] }) })
  return {
    state,
    passwordFile,
    isKnown: history.isKnown,
    logIn: loginsOf(recorded),
    tokens: revocable(state.tokens, history),
  }
}

/** Logs in from an address, and returns the grant. */
function loginsOf(logIn: LogIn) {
  return async (from: string, password = 'the password'): Promise<string> => {
    const client = { address: from, key: from, peerTrusted: false, admitted: true, hops: 0 }
    const result = await logIn(password, { client, answered: false, onEnd() {} }, 'password')
    return typeof result === 'object' && 'grant' in result
      ? (result.grant ?? '')
      : expect.fail(String(result))
  }
}

/** Resolves when a sidecar has heard of all that was announced before. */
async function heard(by: State, from: State, witness: string): Promise<void> {
  await from.tokens.revoke({ grant: witness }, 'client')
  await expect.poll(passing([{ clock }], async () => (await by.tokens.describe([witness])).length)).toBe(0)
}

it.each<[string, (grant: string) => Revocation]>([
  ['its grant', (grant) => ({ grant })],
  ['these grants', (grant) => ({ grants: [grant] })],
  ['the client', () => ({ client: OURS })],
  ['the name', () => ({ name: '' })],
  ['all', () => ({ all: true })],
])('C26 a client of whom an operator revokes %s at one sidecar is known at none', async (_what, which) => {
  needs('redis-server')
  const { at } = await startRedis()
  const [one, two] = [await openMember(at), await openMember(at)]
  const grant = await two.logIn(OURS)
  expect(two.isKnown(OURS)).toBe(true)
  await one.tokens.revoke(which(grant), 'operator')
  await expect.poll(passing([{ clock }], () => two.isKnown(OURS))).toBe(false)
})

it('C26 a client whose last grant has ended is forgotten at every sidecar when an operator revokes it', async () => {
  needs('redis-server')
  const { at } = await startRedis()
  const [one, two] = [await openMember(at), await openMember(at)]
  await two.state.tokens.revoke({ grant: await two.logIn(OURS) }, 'client')
  expect(two.isKnown(OURS)).toBe(true)
  await one.tokens.revoke({ client: OURS }, 'operator')
  await expect.poll(passing([{ clock }], () => two.isKnown(OURS))).toBe(false)
})

it('C26 a client that logs out, or whose password changes, stays known at every sidecar', async () => {
  needs('redis-server')
  const { at } = await startRedis()
  const [one, two] = [await openMember(at), await openMember(at)]
  const grant = await two.logIn(OURS)
  await one.state.tokens.revoke({ grant }, 'client')
  await heard(two.state, one.state, await one.logIn(OTHER))
  expect(two.isKnown(OURS)).toBe(true)
  writeFileSync(one.passwordFile, 'another password\n')
  writeFileSync(two.passwordFile, 'another password\n')
  await expect
    .poll(passing([{ clock }], () => one.logIn(OTHER, 'another password').catch(() => 'refused')))
    .not.toBe('refused')
  await expect
    .poll(passing([{ clock }], () => two.logIn(OTHER, 'another password').catch(() => 'refused')))
    .not.toBe('refused')
  expect(two.isKnown(OURS)).toBe(true)
})
