import { expect, it } from 'vitest'
import { createGate } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import type { Per } from '../../src/http/admission.ts'
import type { Admission } from '../../src/http/exchange.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { stillClock } from '../support/clock.ts'
import { BareExchange } from '../support/exchange.ts'
import { gateRules } from '../support/gate-settings.ts'
import { requestHead } from '../support/request-head.ts'

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
    tables: { api: table, oauth: table },
    identify() {
      lookups += 1
      return { kind: 'valid', grant: 'c0ffee' }
    },
    newRequestId: () => 'the-id',
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
