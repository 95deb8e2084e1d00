import type { Breaker } from '../device/breaker.ts'
import { DeviceFault, failureOf } from '../device/failure.ts'
import { type Forward, hasBody } from '../http/admission.ts'
import { BROKEN_BODY, bodyFault, type Exchange, type UpgradeExchange } from '../http/exchange.ts'
import type { Refusal, UpstreamFailure } from '../http/refusal.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { isBug } from '../system/setup-error.ts'
import { carryCollected, type UploadCollecting } from './collected-upload.ts'
import type { KeptBody } from './kept-body.ts'
import { OVERLOADED, waitForPlace } from './place.ts'
import type { RelayEnd, RelayRules } from './relay.ts'
import { withCredentials } from './request-credentials.ts'
import { type RequestFieldSettings, requestFields } from './request-fields.ts'
import { type ResponseFieldSettings, responseFields } from './response-fields.ts'
import { observeAnswer, sendSignedIn } from './signed-in-request.ts'
import type { Upgrades } from './upgrades.ts'

interface UpstreamEvents {
  /** Milliseconds from sending the request to the head of the device's response. */
  readonly answered: (duration: number) => void
  readonly failed: (failure: UpstreamFailure) => void
  readonly tunnel: (change: 1 | -1) => void
}

/** Sends a request to the device with these fields, and relays the response to the client. `body` replaces the client's. */
type RoundTrip = (
  admission: Forward,
  exchange: Exchange,
  fields: string[],
  rules: RelayRules,
  body: KeptBody | undefined,
) => Promise<RelayEnd>

export interface UpstreamDependencies {
  readonly roundTrip: RoundTrip
  readonly upgrades: Upgrades
  /** Bounds the requests at the device and those that wait for a place there (C25). */
  readonly guard: BoundedQueue
  /** The most upgrades under way and tunnels open. They take no place in `guard`. */
  readonly maxTunnels: number
  /** Where uploads of unknown length are collected before they are sent. */
  readonly collecting: UploadCollecting | undefined
  readonly breaker: Breaker
  /** The sidecar's own account at the device, where it has one. */
  readonly signIn: SignIn | undefined
  readonly request: () => RequestFieldSettings
  readonly response: () => ResponseFieldSettings
  readonly clock: Clock
  readonly events: UpstreamEvents
}

/** The refusal to send; undefined if the client was answered or has left. */
type Forwarded = Refusal | undefined

export interface Upstream {
  forward(admission: Forward, exchange: Exchange): Promise<Forwarded>
  upgrade(admission: Forward, exchange: UpgradeExchange): Promise<Forwarded>
}

/** Forwards requests and upgrades to the device. Takes only what the gate admitted (`Forward`). */
export function createUpstream(deps: UpstreamDependencies): Upstream {
  const { roundTrip, upgrades, guard, collecting, breaker, signIn, clock, events } = deps
  /** Upgrades under way and tunnels open. */
  let upgrading = 0
  /** Whether requests wait for a place at the device. */
  const othersWait = (): boolean => guard.waiting > 0

  function fieldsFor(admission: Forward, exchange: Exchange): string[] {
    return requestFields(exchange.head, admission, deps.request())
  }

  /** A request without a valid token (`public_paths`, a gate that only observes) gets no credentials at the device. */
  function accountFor({ grant }: Forward): SignIn | undefined {
    return grant === undefined ? undefined : signIn
  }

  /** Measures the response time from now on, until the head of the response. */
  function rulesFor(admission: Forward, exchange: Exchange): RelayRules {
    const start = clock.monotonic()
    return {
      project: (device, status) => responseFields(device, status, exchange.head, admission, deps.response()),
      onHead() {
        breaker.succeeded()
        events.answered(clock.monotonic() - start)
      },
    }
  }

  function send(admission: Forward, exchange: Exchange, body: KeptBody | undefined): Promise<RelayEnd> {
    const fields = fieldsFor(admission, exchange)
    const account = accountFor(admission)
    if (account === undefined) {
      return roundTrip(admission, exchange, fields, rulesFor(admission, exchange), body)
    }
    const { method } = exchange.head
    return sendSignedIn(
      { method, target: admission.target, exchange, fields, hasBody: hasBody(admission), body },
      account,
      (to, sent) => roundTrip(admission, to, sent, rulesFor(admission, exchange), undefined),
    )
  }

  /** The refusal for a device that is known to be down. */
  function down(): Forwarded {
    const failure = breaker.refuse()
    if (failure !== undefined) events.failed(failure)
    return failure === undefined ? undefined : { kind: 'upstream', failure }
  }

  function report(end: RelayEnd): Forwarded {
    if (end.kind === 'relayed' || end.kind === 'abandoned') return undefined
    const client = bodyFault(end.error)
    if (client !== undefined) return client
    if (isBug(end.error)) throw end.error
    const failure = nameOf(end)
    breaker.failed(failure)
    events.failed(failure)
    return end.kind === 'failed' ? { kind: 'upstream', failure } : undefined
  }

  /** Sends the request while it holds a place at the device. */
  async function carry(admission: Forward, exchange: Exchange, body?: KeptBody): Promise<Forwarded> {
    const place = guard.tryEnter() ?? (await waitForPlace(guard, exchange, admission.client))
    if (typeof place !== 'function') return place
    exchange.contestedWhile(othersWait)
    try {
      return report(await send(admission, exchange, body))
    } finally {
      place()
    }
  }

  return {
    forward(admission, exchange) {
      if (exchange.broken) return Promise.resolve(BROKEN_BODY)
      const refusal = down()
      if (refusal !== undefined) return Promise.resolve(refusal)
      if (collecting === undefined || admission.framing !== 'chunked') return carry(admission, exchange)
      return carryCollected(admission, exchange, collecting, carry)
    },

    async upgrade(admission, exchange) {
      if (upgrading >= deps.maxTunnels) return OVERLOADED
      const refusal = down()
      if (refusal !== undefined) return refusal
      upgrading += 1
      exchange.onEnd(() => {
        upgrading -= 1
      })
      const line = { method: 'GET', target: admission.target }
      const account = accountFor(admission)
      const failure = await account?.ready()
      if (failure !== undefined) {
        return report({ kind: 'failed', error: new DeviceFault(failure), silent: true })
      }
      const shown = account?.credentialsFor(line)
      const observe = account === undefined ? undefined : observeAnswer(account, line, shown)
      let tunnels = false
      const end = await upgrades.open({
        target: admission.target,
        fields: withCredentials(fieldsFor(admission, exchange), shown?.fields ?? []),
        exchange,
        project: (device, status) =>
          responseFields(
            observe?.(device, status) ?? device,
            status,
            exchange.head,
            admission,
            deps.response(),
          ),
        onTunnel() {
          tunnels = true
          breaker.succeeded()
          events.tunnel(1)
        },
      })
      if (tunnels) events.tunnel(-1)
      return report(end)
    },
  }
}

/** RFC 9209 §2.3 has two names for a lost connection: one before the first byte of a response, the other within it. */
function nameOf(end: Extract<RelayEnd, { kind: 'failed' | 'broken' }>): UpstreamFailure {
  const failure = failureOf(end.error)
  const begun = end.kind === 'broken' || !end.silent
  return begun && failure === 'connection_terminated' ? 'http_response_incomplete' : failure
}
