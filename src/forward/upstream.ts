import { DeviceFault, failureOf } from '../device/failure.ts'
import { type Forward, hasBody } from '../http/admission.ts'
import { BROKEN_BODY, bodyFault, type Exchange, type UpgradeExchange } from '../http/exchange.ts'
import type { Refusal, UpstreamFailure } from '../http/refusal.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Leave } from '../system/bounded-queue.ts'
import { isBug } from '../system/setup-error.ts'
import type { BufferedBody } from './buffered-body.ts'
import { sendBuffered, type UploadBuffering } from './buffered-upload.ts'
import { ForwardedRequest, type ResponseDependencies } from './forwarded-request.ts'
import { firstBytes, OVERLOADED, type Places, waitForPlace } from './place.ts'
import { type RequestFieldSettings, requestFields, withCredentials } from './request-fields.ts'
import { responseFields } from './response-fields.ts'
import type { RoundTripEnd, RoundTripRequest } from './round-trip.ts'
import { observeResponse, sendSignedIn } from './signed-in-request.ts'
import type { Upgrades } from './upgrades.ts'

type UpstreamEvents = ResponseDependencies['events'] & {
  readonly relayed: () => void
  readonly failed: (failure: UpstreamFailure) => void
  readonly tunnel: (change: 1 | -1) => void
}

/** Its `queue` bounds the requests at the device and the requests that wait for a place there (C25). */
export interface UpstreamDependencies extends ResponseDependencies, Places {
  /** The path of a service of `upstream.routes`; empty for the main service. */
  readonly route: string
  /** Sends a request to the device and relays its response. */
  readonly roundTrip: (request: RoundTripRequest) => void
  readonly upgrades: Upgrades
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: () => number
  /** The maximum of upgrades in progress and open tunnels together. They take no place in `queue`. */
  readonly maxTunnels: number
  /** How uploads of unknown length are buffered before they are sent; undefined if they are not. */
  readonly buffering: UploadBuffering | undefined
  /** The sidecar's own account at the device, if it has one. */
  readonly signIn: SignIn | undefined
  readonly request: () => RequestFieldSettings
  readonly events: UpstreamEvents
}

/** One of its methods is called, once. */
export interface ForwardListener {
  /** @param refusal to send to the client; undefined if the client has a response or has left */
  ended(refusal: Refusal | undefined): void
  /** A bug of the sidecar ended the request. */
  onBug(bug: unknown): void
}

export interface Upstream {
  forward(admission: Forward, exchange: Exchange, listener: ForwardListener): void
  upgrade(admission: Forward, exchange: UpgradeExchange, listener: ForwardListener): void
}

/** Forwards requests and upgrades to the device. It accepts only requests that the gate admitted (`Forward`). */
export function createUpstream(deps: UpstreamDependencies): Upstream {
  const { roundTrip, upgrades, queue, buffering, breaker, signIn, clock, events } = deps
  /** Upgrades in progress and open tunnels. */
  let upgrading = 0
  /** Whether requests wait for a place at the device. */
  const othersWait = (): boolean => queue.waiting > 0

  function fieldsFor(admission: Forward, exchange: Exchange): string[] {
    return requestFields(exchange.head, admission, deps.request())
  }

  /** A request without a valid token (`public_paths`, or a gate that only observes) gets none of the sidecar's credentials. */
  function accountFor({ grant }: Forward): SignIn | undefined {
    return grant === undefined ? undefined : signIn
  }

  function send(
    admission: Forward,
    exchange: Exchange,
    body: BufferedBody | undefined,
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
      ).then(onEnd, (error: unknown) => onEnd({ kind: 'bug', error }))
    }
  }

  /** The refusal if the device is known to be down. */
  function down({ trace }: Forward): Refusal | undefined {
    const failure = breaker.refuse()
    trace.failure = failure
    if (failure !== undefined) events.failed(failure)
    return failure === undefined ? undefined : { kind: 'upstream', failure }
  }

  /** Reports a failure of the device, and returns the refusal for the client. Throws if a bug ended the request. */
  function report(end: RoundTripEnd, { trace }: Forward): Refusal | undefined {
    if (end.kind === 'relayed' || end.kind === 'abandoned') return undefined
    if (end.kind === 'bug') throw end.error
    const client = bodyFault(end.error)
    if (client !== undefined) return client
    if (isBug(end.error)) throw end.error
    const failure = nameOf(end)
    trace.failure = failure
    breaker.failed(failure)
    events.failed(failure)
    return end.kind === 'failed' ? { kind: 'upstream', failure } : undefined
  }

  /** Sends the request as soon as it has a place at the device. */
  function enqueue(
    admission: Forward,
    exchange: Exchange,
    listener: ForwardListener,
    body?: BufferedBody,
  ): void {
    const leave = queue.tryEnter()
    if (leave !== undefined) sendThenLeave(admission, exchange, listener, body, leave)
    else
      waitForPlace(deps, exchange, admission, clock)
        .then((entry) => {
          if (typeof entry === 'function') sendThenLeave(admission, exchange, listener, body, entry)
          else listener.ended(entry)
        })
        .catch((bug: unknown) => listener.onBug(bug))
  }

  function startLater(admission: Forward, exchange: Exchange, listener: ForwardListener): void {
    firstBytes(exchange, deps.uploadTimeout())
      .then((fault) => (fault === undefined ? start(admission, exchange, listener) : listener.ended(fault)))
      .catch((bug: unknown) => listener.onBug(bug))
  }

  function start(admission: Forward, exchange: Exchange, listener: ForwardListener): void {
    if (buffering === undefined || admission.framing !== 'chunked') enqueue(admission, exchange, listener)
    else notify(sendBuffered(admission, exchange, buffering, clock, enqueueBuffered), listener)
  }

  function enqueueBuffered(
    admission: Forward,
    exchange: Exchange,
    body: BufferedBody,
  ): Promise<Refusal | undefined> {
    return new Promise((ended, onBug) => enqueue(admission, exchange, { ended, onBug }, body))
  }

  function sendThenLeave(
    admission: Forward,
    exchange: Exchange,
    listener: ForwardListener,
    body: BufferedBody | undefined,
    leave: Leave,
  ): void {
    exchange.contestedWhile(othersWait)
    try {
      send(admission, exchange, body, (end) => {
        leave()
        if (end.kind === 'relayed') events.relayed()
        // A socket event calls this, and no caller would catch a bug.
        try {
          listener.ended(report(end, admission))
        } catch (bug) {
          listener.onBug(bug)
        }
      })
    } catch (bug) {
      leave()
      throw bug
    }
  }

  async function openTunnel(admission: Forward, exchange: UpgradeExchange): Promise<Refusal | undefined> {
    if (upgrading >= deps.maxTunnels) return OVERLOADED
    const refusal = down(admission)
    if (refusal !== undefined) return refusal
    upgrading += 1
    exchange.onEnd(() => {
      upgrading -= 1
    })
    const line = { method: 'GET', target: admission.target }
    const account = accountFor(admission)
    const failure = await account?.ready()
    if (failure !== undefined) {
      return report({ kind: 'failed', error: new DeviceFault(failure), silent: true }, admission)
    }
    const shown = account?.credentialsFor(line)
    const observe = account === undefined ? undefined : observeResponse(account, line, shown)
    let tunnels = false
    const { trace } = admission
    trace.sentAt = clock.monotonic()
    const end = await upgrades.open({
      target: admission.target,
      fields: withCredentials(fieldsFor(admission, exchange), shown?.fields ?? []),
      exchange,
      onSent() {
        trace.attempts = 1
      },
      project: (device, status) => {
        trace.status = status
        trace.headAt = clock.monotonic()
        const head = { status, fields: observe?.(device, status) ?? device, remembered: false }
        const { fields } = responseFields(head, exchange.head, admission, deps.response())
        return [...fields, ...admission.limitFields]
      },
      onTunnel() {
        tunnels = true
        breaker.succeeded()
        events.tunnel(1)
      },
    })
    if (tunnels) events.tunnel(-1)
    else if (end.kind === 'relayed') events.relayed()
    return report(end, admission)
  }

  return {
    forward(admission, exchange, listener) {
      admission.trace.route = deps.route
      const refusal = exchange.broken ? BROKEN_BODY : down(admission)
      if (refusal !== undefined) listener.ended(refusal)
      else if (admission.framing === null) enqueue(admission, exchange, listener)
      else if (exchange.arrived > 0) start(admission, exchange, listener)
      else startLater(admission, exchange, listener)
    },
    upgrade(admission, exchange, listener) {
      admission.trace.route = deps.route
      notify(openTunnel(admission, exchange), listener)
    },
  }
}

function notify(work: Promise<Refusal | undefined>, listener: ForwardListener): void {
  work.then((refusal) => listener.ended(refusal)).catch((bug: unknown) => listener.onBug(bug))
}

/** RFC 9209 §2.3 has two names for a lost connection: one before the first byte of the response, the other after it. */
function nameOf(end: Extract<RoundTripEnd, { kind: 'failed' | 'broken' }>): UpstreamFailure {
  const failure = failureOf(end.error)
  const begun = end.kind === 'broken' || !end.silent
  return begun && failure === 'connection_terminated' ? 'http_response_incomplete' : failure
}
