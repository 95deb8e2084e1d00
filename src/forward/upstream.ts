import { DeviceFault, failureOf } from '../device/failure.ts'
import { type Forward, hasBody } from '../http/admission.ts'
import { BROKEN_BODY, bodyFault, type Exchange, type UpgradeExchange } from '../http/exchange.ts'
import type { Refusal, UpstreamFailure } from '../http/refusal.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { BoundedQueue, Leave } from '../system/bounded-queue.ts'
import { isBug } from '../system/setup-error.ts'
import { carryCollected, type UploadCollecting } from './collected-upload.ts'
import { ForwardedRequest, type ResponseDependencies } from './forwarded-request.ts'
import type { KeptBody } from './kept-body.ts'
import { OVERLOADED, waitForPlace } from './place.ts'
import { type RequestFieldSettings, requestFields, withCredentials } from './request-fields.ts'
import type { RoundTripEnd, RoundTripRequest } from './round-trip.ts'
import { observeAnswer, sendSignedIn } from './signed-in-request.ts'
import type { Upgrades } from './upgrades.ts'

type UpstreamEvents = ResponseDependencies['events'] & {
  readonly failed: (failure: UpstreamFailure) => void
  readonly tunnel: (change: 1 | -1) => void
}

export interface UpstreamDependencies extends ResponseDependencies {
  /** Sends a request to the device and relays its response. */
  readonly roundTrip: (request: RoundTripRequest) => void
  readonly upgrades: Upgrades
  /** Bounds the requests at the device and those that wait for a place there (C25). */
  readonly guard: BoundedQueue
  /** The most upgrades under way and tunnels open. They take no place in `guard`. */
  readonly maxTunnels: number
  /** Where uploads of unknown length are collected before they are sent. */
  readonly collecting: UploadCollecting | undefined
  /** The sidecar's own account at the device, where it has one. */
  readonly signIn: SignIn | undefined
  readonly request: () => RequestFieldSettings
  readonly events: UpstreamEvents
}

/** Is told once how forwarding ended. */
export interface ForwardListener {
  /** The refusal to send; undefined if the client was answered or has left. */
  ended(refusal: Refusal | undefined): void
  /** A bug of the sidecar ended it. */
  failed(bug: unknown): void
}

export interface Upstream {
  forward(admission: Forward, exchange: Exchange, listener: ForwardListener): void
  upgrade(admission: Forward, exchange: UpgradeExchange, listener: ForwardListener): void
}

/** Forwards requests and upgrades to the device. Takes only what the gate admitted (`Forward`). */
export function createUpstream(deps: UpstreamDependencies): Upstream {
  const { roundTrip, upgrades, guard, collecting, breaker, signIn, events } = deps
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

  function send(
    admission: Forward,
    exchange: Exchange,
    body: KeptBody | undefined,
    onEnd: RoundTripRequest['onEnd'],
  ): void {
    const fields = fieldsFor(admission, exchange)
    const account = accountFor(admission)
    if (account === undefined) roundTrip(new ForwardedRequest(deps, admission, exchange, fields, body, onEnd))
    else {
      const { method } = exchange.head
      sendSignedIn(
        { method, target: admission.target, exchange, fields, hasBody: hasBody(admission), body },
        account,
        (to, sent) =>
          new Promise((resolve) =>
            roundTrip(new ForwardedRequest(deps, admission, to, sent, undefined, resolve)),
          ),
      ).then(onEnd, (error: unknown) => onEnd({ kind: 'failed', error, silent: true }))
    }
  }

  /** The refusal for a device that is known to be down. */
  function down(): Refusal | undefined {
    const failure = breaker.refuse()
    if (failure !== undefined) events.failed(failure)
    return failure === undefined ? undefined : { kind: 'upstream', failure }
  }

  /** The refusal that follows from the end of a request. Throws a bug that ended it. */
  function report(end: RoundTripEnd): Refusal | undefined {
    if (end.kind === 'relayed' || end.kind === 'abandoned') return undefined
    const client = bodyFault(end.error)
    if (client !== undefined) return client
    if (isBug(end.error)) throw end.error
    const failure = nameOf(end)
    breaker.failed(failure)
    events.failed(failure)
    return end.kind === 'failed' ? { kind: 'upstream', failure } : undefined
  }

  /** Sends the request when it has a place at the device. */
  function carry(admission: Forward, exchange: Exchange, listener: ForwardListener, body?: KeptBody): void {
    const place = guard.tryEnter()
    if (place !== undefined) carryInPlace(admission, exchange, listener, body, place)
    else
      waitForPlace(guard, exchange, admission.client)
        .then((entry) => {
          if (typeof entry === 'function') carryInPlace(admission, exchange, listener, body, entry)
          else listener.ended(entry)
        })
        .catch((bug: unknown) => listener.failed(bug))
  }

  function carryLater(admission: Forward, exchange: Exchange, body: KeptBody): Promise<Refusal | undefined> {
    return new Promise((ended, failed) => carry(admission, exchange, { ended, failed }, body))
  }

  function carryInPlace(
    admission: Forward,
    exchange: Exchange,
    listener: ForwardListener,
    body: KeptBody | undefined,
    leave: Leave,
  ): void {
    exchange.contestedWhile(othersWait)
    try {
      send(admission, exchange, body, (end) => {
        leave()
        // A socket event calls this: nothing above would catch a bug.
        try {
          listener.ended(report(end))
        } catch (bug) {
          listener.failed(bug)
        }
      })
    } catch (bug) {
      leave()
      throw bug
    }
  }

  async function openTunnel(admission: Forward, exchange: UpgradeExchange): Promise<Refusal | undefined> {
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
    const forwarded = new ForwardedRequest(deps, admission, exchange, [], undefined, () => {})
    let tunnels = false
    const end = await upgrades.open({
      target: admission.target,
      fields: withCredentials(fieldsFor(admission, exchange), shown?.fields ?? []),
      exchange,
      project: (device, status) => {
        const fields = observe?.(device, status) ?? device
        return [...forwarded.project({ status, reason: '', fields, repeated: false }), ...forwarded.own]
      },
      onTunnel() {
        tunnels = true
        breaker.succeeded()
        events.tunnel(1)
      },
    })
    if (tunnels) events.tunnel(-1)
    return report(end)
  }

  return {
    forward(admission, exchange, listener) {
      const refusal = exchange.broken ? BROKEN_BODY : down()
      if (refusal !== undefined) listener.ended(refusal)
      else if (collecting === undefined || admission.framing !== 'chunked')
        carry(admission, exchange, listener)
      else follow(carryCollected(admission, exchange, collecting, carryLater), listener)
    },
    upgrade: (admission, exchange, listener) => follow(openTunnel(admission, exchange), listener),
  }
}

function follow(work: Promise<Refusal | undefined>, listener: ForwardListener): void {
  work.then((refusal) => listener.ended(refusal)).catch((bug: unknown) => listener.failed(bug))
}

/** RFC 9209 §2.3 has two names for a lost connection: one before the first byte of a response, the other within it. */
function nameOf(end: Extract<RoundTripEnd, { kind: 'failed' | 'broken' }>): UpstreamFailure {
  const failure = failureOf(end.error)
  const begun = end.kind === 'broken' || !end.silent
  return begun && failure === 'connection_terminated' ? 'http_response_incomplete' : failure
}
