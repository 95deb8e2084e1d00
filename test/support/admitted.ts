import type { ForwardExchange } from '../../src/forward/forward-exchange.ts'
import type { RequestFieldSettings } from '../../src/forward/request-fields.ts'
import { createGate, type GateRules } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import type { CredentialStores } from '../../src/gate/credential.ts'
import { requestIdOf } from '../../src/gate/request-id.ts'
import type { Exchange, RequestHead } from '../../src/http/exchange.ts'
import { keepFields } from '../../src/http/fields.ts'
import { type Cidr, parseCidr, prefix64 } from '../../src/http/ip.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { stillClock } from './clock.ts'
import { BareExchange, requestHead } from './exchange.ts'

/** What a gate has of sessions before the first login of a browser. */
export const NO_SESSIONS: CredentialStores['sessions'] = {
  has: () => false,
  identify: () => ({ kind: 'refused', cause: 'missing' }),
}

/** The default settings of a gate, without public paths and with the same limit for both endpoints. */
export function gateRules(limit: GateRules['limits']['api'], over: Partial<GateRules> = {}): GateRules {
  return {
    limits: { api: limit, oauth: limit, browser: limit },
    ietfHeaders: false,
    findPublic: () => undefined,
    scopes: undefined,
    enforce: true,
    revocationPath: undefined,
    browser: false,
    cors: undefined,
    headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
    ...over,
  }
}

/** The request fields by default. */
export const PLAIN: RequestFieldSettings = {
  host: undefined,
  added: [],
  named: [],
  set: new Set(),
  keeps: undefined,
  claims: true,
  response: { passes: undefined, added: undefined },
  scheme: 'http',
  referrers: false,
  names: [],
  rewrite: false,
}

const limit = { requests: 1_000_000, window: 60_000, per: 'client' } as const

/** A request that the gate has admitted, as `forward/` sees it. Only the gate can make a `Forward`, so this asks a real gate. */
export function admitted(
  head: RequestHead,
  trustedProxies: readonly string[] = [],
): ForwardExchange<BareExchange> {
  const clock = stillClock()
  const trusted = trustedProxies.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined)
  const table = createWindowTable(limit, { clock, maxKeys: 10 })
  const admit = createGate({
    clock,
    tables: { api: table, oauth: table, browser: table },
    sessions: NO_SESSIONS,
    identify: () => ({ kind: 'valid', grant: 'grant' }),
    settings: {
      gate: gateRules(limit, { headerCaps: { maxHeaderSize: 1 << 20, maxHeaderCount: 10_000 } }),
      clientOf: createClientAddress(trusted),
    },
  })
  const withoutToken = keepFields(head.fields, (name) => name !== 'authorization')
  const fields = [...withoutToken, 'Authorization', 'Bearer x']
  const admission = admit(new BareExchange(requestHead({ ...head, fields })))
  if (admission instanceof Promise || admission.kind !== 'forward') throw new Error('not admitted')
  // What the passage does.
  const requestId = requestIdOf(admission.head.survey.requestId, admission.client.peerTrusted)
  // What the door of `forward/` does.
  return Object.assign(admission, { requestId }) as ForwardExchange<BareExchange>
}

/** What a test sets of an exchange that has ended. `client`: its address. */
type Facts = Partial<Omit<Exchange, 'client' | 'classified'>> & {
  readonly client?: string
  readonly endpoint?: Exchange['classified']['endpoint']
}

/** A request that was forwarded, and has ended, with these facts in place of its own. */
export function exchangeRecord({ client, endpoint, ...facts }: Facts = {}): BareExchange {
  const exchange = admitted(requestHead())
  return Object.assign(exchange, {
    grant: undefined,
    outcome: 'complete' as const,
    status: 200,
    duration: 4,
    ...facts,
    client:
      client === undefined ? exchange.client : { ...exchange.client, address: client, key: prefix64(client) },
    classified: endpoint === undefined ? exchange.classified : { ...exchange.classified, endpoint },
  })
}
