// Compiled by `npm run types`, never run: each line under `@ts-expect-error` must not compile. Where it does, there is
// a way to the device past the limit or the token check, and the compiler says so by complaining about the directive.

import type { ForwardListener, Upstream } from '../../src/forward/upstream.ts'
import type { Admit } from '../../src/gate/admit.ts'
import type { Admission, Forward, Refused, TokenRequest } from '../../src/http/admission.ts'
import type { Exchange, RequestHead, UpgradeExchange } from '../../src/http/exchange.ts'

declare const admit: Admit
declare const head: RequestHead
declare const exchange: Exchange
declare const upgrade: UpgradeExchange
declare const upstream: Upstream
declare const listener: ForwardListener
declare const refused: Refused
declare const tokenRequest: TokenRequest
declare const forward: Forward
declare const admission: Admission

/** What the gate let through is taken. */
export async function theWayThrough(): Promise<void> {
  const answer = await admit(head)
  if (answer.kind !== 'forward') return
  upstream.forward(answer, exchange, listener)
  upstream.upgrade(answer, upgrade, listener)
}

/** Nothing else is. */
export async function everyOtherWay(): Promise<void> {
  // @ts-expect-error an admission may be a refusal
  upstream.forward(admission, exchange, listener)
  // @ts-expect-error the answer of the gate has to be looked at
  upstream.forward(admit(head), exchange, listener)
  // @ts-expect-error nor once it is there
  upstream.forward(await admit(head), exchange, listener)
  // @ts-expect-error a refusal
  upstream.forward(refused, exchange, listener)
  // @ts-expect-error a refusal
  upstream.upgrade(refused, upgrade, listener)
  // @ts-expect-error the token endpoint is never the device's
  upstream.forward(tokenRequest, exchange, listener)
  // @ts-expect-error a request that nobody looked at
  upstream.forward(head, exchange, listener)
  // @ts-expect-error nothing at all
  upstream.forward(undefined, exchange, listener)
}

/** Everything that leave says, made by hand: all of its fields but the mark, which has no name outside of its file. */
declare const byHand: { readonly [key in keyof Forward as key & string]: Forward[key] }

// @ts-expect-error it lacks the mark that only the gate gives
export const madeByHand: Forward = byHand

// @ts-expect-error the mark has no name outside of `http/admission.ts`
export const marked: Forward = { ...refused, admitted: true }

// @ts-expect-error nor does a refusal become leave by another kind
export const relabelled: Forward = { ...refused, kind: 'forward' }

// @ts-expect-error a cast alone does not do it either
export const cast: Forward = refused as Forward

// A copy of leave that was given is leave still, and no field of it can be changed on the way.
export const copied: Forward = { ...forward }
// @ts-expect-error read-only
forward.target = '/other'
// @ts-expect-error read-only
forward.grant = 'another'
