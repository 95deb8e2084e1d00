import { expect, it } from 'vitest'
import { createGate } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import type { Per } from '../../src/http/admission.ts'
import type { Admission } from '../../src/http/exchange.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { gateRules, NO_SESSIONS } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { BareExchange, requestHead } from '../support/exchange.ts'

const LIMIT = 2
const FLOOD = 5

/** The admissions of a flood with a live token, and the number of token lookups. */
function flood({ per, enforce }: { readonly per: Per; readonly enforce: boolean }): {
  readonly kinds: readonly Admission['kind'][]
  readonly lookups: number
} {
  const clock = stillClock()
  const limit = { requests: LIMIT, window: 60_000, per }
  const table = createWindowTable(limit, { clock, maxKeys: 10 })
  let lookups = 0
  const admit = createGate({
    clock,
    tables: { api: table, oauth: table, browser: table },
    sessions: NO_SESSIONS,
    identify() {
      lookups += 1
      return { kind: 'valid', grant: 'c0ffee' }
    },
    settings: { gate: gateRules(limit, { enforce }), clientOf: createClientAddress([]) },
  })
  const head = requestHead({ fields: ['Host', 'device.example', 'Authorization', 'Bearer shown'] })
  const kinds = Array.from({ length: FLOOD }, () => {
    const admission = admit(new BareExchange(head))
    return admission instanceof Promise ? expect.fail('admission was asynchronous') : admission.kind
  })
  return { kinds, lookups }
}

const PAST_THE_LIMIT = ['forward', 'forward', 'refused', 'refused', 'refused']

for (const per of ['client', 'device'] as const) {
  it(`C13 a flood past a limit per ${per} costs no hash: its tokens are not looked up`, () => {
    expect(flood({ per, enforce: true })).toEqual({ kinds: PAST_THE_LIMIT, lookups: LIMIT })
  })
}

it('C17 a limit per grant looks up each token once, because it counts by grant', () => {
  expect(flood({ per: 'grant', enforce: true })).toEqual({ kinds: PAST_THE_LIMIT, lookups: FLOOD })
})

it('with enforce off, tokens past the limit are looked up, because those requests reach the device', () => {
  const kinds = Array.from({ length: FLOOD }, () => 'forward')
  expect(flood({ per: 'client', enforce: false })).toEqual({ kinds, lookups: FLOOD })
})

it('C8 C13 of a head that repeats nothing is kept but what follows from it: token and window are asked each time', () => {
  const clock = stillClock()
  const limit = { requests: 2, window: 60_000, per: 'client' } as const
  const table = createWindowTable(limit, { clock, maxKeys: 10 })
  let revoked = false
  const settings = { gate: gateRules(limit), clientOf: createClientAddress([]) }
  const admit = createGate({
    clock,
    tables: { api: table, oauth: table, browser: table },
    sessions: NO_SESSIONS,
    identify: () => (revoked ? { kind: 'refused', cause: 'revoked' } : { kind: 'valid', grant: 'c0ffee' }),
    settings,
  })
  const head = requestHead({
    target: '/out',
    fields: ['Host', 'device.example', 'Authorization', 'Bearer x'],
  })
  const ask = (): BareExchange => {
    const exchange = new BareExchange(head)
    expect(admit(exchange)).toBe(exchange)
    return exchange
  }
  expect(ask()).toMatchObject({ kind: 'forward', grant: 'c0ffee' })
  revoked = true
  expect(ask()).toMatchObject({ kind: 'refused', refusal: { kind: 'unauthorized', cause: 'revoked' } })
  expect(ask()).toMatchObject({ kind: 'refused', refusal: { kind: 'rate-limited' } })
  // A reload: the same head now names an endpoint of the sidecar.
  settings.gate = gateRules(limit, { revocationPath: '/out' })
  expect(ask().classified).toMatchObject({ endpoint: 'oauth', ownEndpoint: 'revocation' })
})
