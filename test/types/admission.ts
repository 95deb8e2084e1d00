// Compiled by `npm run types`, never run. Each line under `@ts-expect-error` must not compile. If one compiles, a request
// can reach the device past the rate limit or the token check, and the compiler reports the unused directive.

import type { ForwardListener, Upstream } from '../../src/forward/upstream.ts'
import type { Admit } from '../../src/gate/admit.ts'
import type { Admission, Forward, OwnEndpointRequest, Refused } from '../../src/http/admission.ts'
import type { Exchange, RequestHead, UpgradeExchange } from '../../src/http/exchange.ts'

declare const admit: Admit
declare const head: RequestHead
declare const exchange: Exchange
declare const upgrade: UpgradeExchange
declare const upstream: Upstream
declare const listener: ForwardListener
declare const refused: Refused
declare const ownEndpointRequest: OwnEndpointRequest
declare const forward: Forward
declare const admission: Admission

/** The device connection accepts a request that the gate has admitted. */
export async function admittedRequests(): Promise<void> {
  const admitted = await admit(head)
  if (admitted.kind !== 'forward') return
  upstream.forward(admitted, exchange, listener)
  upstream.upgrade(admitted, upgrade, listener)
}

/** It accepts nothing else. */
export async function everythingElse(): Promise<void> {
  // @ts-expect-error an admission may be a refusal
  upstream.forward(admission, exchange, listener)
  // @ts-expect-error the result of the gate must be awaited and checked
  upstream.forward(admit(head), exchange, listener)
  // @ts-expect-error the result of the gate must be checked
  upstream.forward(await admit(head), exchange, listener)
  // @ts-expect-error a refusal
  upstream.forward(refused, exchange, listener)
  // @ts-expect-error a refusal
  upstream.upgrade(refused, upgrade, listener)
  // @ts-expect-error a token request never goes to the device
  upstream.forward(ownEndpointRequest, exchange, listener)
  // @ts-expect-error a request that the gate has not seen
  upstream.forward(head, exchange, listener)
  // @ts-expect-error no request
  upstream.forward(undefined, exchange, listener)
}

/** A `Forward` made by hand: all of its fields except the mark, which has no name outside of its file. */
declare const byHand: { readonly [key in keyof Forward as key & string]: Forward[key] }

// @ts-expect-error the mark is missing, which only the gate sets
export const madeByHand: Forward = byHand

// @ts-expect-error the mark has no name outside of `http/admission.ts`
export const marked: Forward = { ...refused, admitted: true }

// @ts-expect-error another `kind` does not make a refusal a `Forward`
export const relabelled: Forward = { ...refused, kind: 'forward' }

// @ts-expect-error nor does a cast
export const cast: Forward = refused as Forward

// A copy of a `Forward` is a `Forward`, and its fields are read-only.
export const copied: Forward = { ...forward }
// @ts-expect-error read-only
forward.target = '/other'
// @ts-expect-error read-only
forward.grant = 'another'
