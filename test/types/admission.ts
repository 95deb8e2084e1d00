// Compiled by `npm run types`, never run. Each line under `@ts-expect-error` must not compile. If one compiles, a request
// can reach the device past the rate limit or the token check, or a room can write a fact of another one, and the compiler reports the
// unused directive.

import type { ForwardExchange } from '../../src/forward/forward-exchange.ts'
import type { Upstream } from '../../src/forward/upstream.ts'
import type { Admit } from '../../src/gate/admit.ts'
import type { GateExchange } from '../../src/gate/gate-exchange.ts'
import type {
  Admission,
  Exchange,
  Forward,
  ForwardListener,
  RequestHead,
  UpgradeExchange,
} from '../../src/http/exchange.ts'
import type { RecordExchange } from '../../src/record/record-exchange.ts'

declare const admit: Admit
declare const head: RequestHead
declare const exchange: Exchange
declare const upgrade: UpgradeExchange
declare const forward: Forward
declare const upstream: Upstream
declare const listener: ForwardListener
declare const refused: Extract<Admission, { readonly kind: 'refused' }>
declare const ownEndpointRequest: Extract<Admission, { readonly kind: 'own-endpoint' }>
declare const admission: Admission

/** The device connection accepts a request that the gate has admitted. */
export async function admittedRequests(): Promise<void> {
  const admitted = await admit(exchange)
  if (admitted.kind === 'forward') upstream(admitted, listener)
  const upgraded = await admit(upgrade)
  if (upgraded.kind === 'forward') upstream(upgraded, listener)
}

/** It accepts nothing else. */
export async function everythingElse(): Promise<void> {
  // @ts-expect-error an admission may be a refusal
  upstream(admission, listener)
  // @ts-expect-error the result of the gate must be awaited and checked
  upstream(admit(exchange), listener)
  // @ts-expect-error the result of the gate must be checked
  upstream(await admit(exchange), listener)
  // @ts-expect-error a refusal
  upstream(refused, listener)
  // @ts-expect-error a token request never goes to the device
  upstream(ownEndpointRequest, listener)
  // @ts-expect-error a request that the gate has not seen, although it is the same object
  upstream(exchange, listener)
  // @ts-expect-error an upgrade that the gate has not seen
  upstream(upgrade, listener)
  // @ts-expect-error only the head of a request
  upstream(head, listener)
  // @ts-expect-error no request
  upstream(undefined, listener)
}

/** What an exchange says of itself is not enough: only the gate's answer has the mark. */
export function unmarked(): void {
  // @ts-expect-error the mark is missing
  if (exchange.kind === 'forward') upstream(exchange, listener)
}

/** A `Forward` made by hand: all of its fields except the mark, which has no name outside of its file. */
declare const byHand: { readonly [key in keyof Forward as key & string]: Forward[key] }

// @ts-expect-error the mark is missing, which only the gate sets
export const madeByHand: Forward = byHand

// @ts-expect-error the mark has no name outside of `http/exchange.ts`
export const marked: Forward = Object.assign(exchange, { kind: 'forward' as const, admitted: true as const })

// @ts-expect-error another `kind` does not make an exchange a `Forward`
export const relabelled: Forward = Object.assign(exchange, { kind: 'forward' as const })

// @ts-expect-error nor does a cast
export const cast: Forward = refused as Forward

// Each fact of an exchange is read-only for all rooms but its writer.

// @ts-expect-error only `gate/` writes `GateFacts`
forward.classified = exchange.classified
// @ts-expect-error read-only
forward.classified.target = '/other'
// @ts-expect-error read-only
forward.grant = 'another'
// @ts-expect-error read-only
exchange.kind = 'forward'
// @ts-expect-error only `forward/` writes `DeviceFacts`
exchange.attempts = 1
// @ts-expect-error only `listen/` writes `ClientFacts`
exchange.status = 200
// @ts-expect-error only `gate/` writes `DerivedByGate`
exchange.head.classified = exchange.classified
// @ts-expect-error only `forward/` writes `DerivedByForward`
exchange.head.outgoing = undefined
// @ts-expect-error only `record/` writes `DerivedByRecord`
exchange.head.shown = '/'

// No room gets the view of another one, and none gets its own but by its door.

declare const atGate: GateExchange
declare const atForward: ForwardExchange
declare const atRecord: RecordExchange

// @ts-expect-error the gate writes nothing of the device
atGate.attempts = 1
// @ts-expect-error `forward/` writes nothing of the gate
atForward.grant = 'another'
// @ts-expect-error `record/` writes no fact
atRecord.duration = 1
// @ts-expect-error the mark of the gate is missing
export const withoutGate: GateExchange = exchange
// @ts-expect-error the mark of `forward/` is missing, although the gate admitted the request
export const withoutForward: ForwardExchange = forward
// @ts-expect-error the mark of `record/` is missing
export const withoutRecord: RecordExchange = exchange
// @ts-expect-error the mark of another room
export const ofAnother: GateExchange = atForward
