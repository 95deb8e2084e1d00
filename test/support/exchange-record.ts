import type { Exchange } from '../../src/http/exchange.ts'
import { prefix64 } from '../../src/http/ip.ts'
import type { BareExchange } from './exchange.ts'
import { admitted } from './forward.ts'
import { requestHead } from './request-head.ts'

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
