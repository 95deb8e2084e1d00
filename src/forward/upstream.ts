import { faultOf } from '../device/tls-faults.ts'
import type { Exchange, Forward, ForwardEnd, ForwardListener, UpgradeExchange } from '../http/exchange.ts'
import {
  BROKEN_BODY,
  bodyFault,
  isUnreachable,
  OVERSIZED_BODY,
  type Refusal,
  type UpstreamFailure,
} from '../http/refusal.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Leave } from '../system/bounded-queue.ts'
import { IdleList } from '../system/idle-list.ts'
import { isBug } from '../system/setup-error.ts'
import { cutOff } from './body-bound.ts'
import { bufferBody, sendBuffered, type UploadBuffering } from './buffered-body.ts'
import { atForward, type ForwardExchange } from './forward-exchange.ts'
import type { Learner } from './learner.ts'
import { bodyRefusal, OVERLOADED, type QueuePlaces, waitForPlace } from './place.ts'
import { forwardToDevice } from './round-trip.ts'
import {
  failureIn,
  type RoundTripEnd,
  type RoundTripService,
  type Substitutes,
} from './round-trip-service.ts'
import { type SignedIn, sendSignedIn } from './signed-in-request.ts'
import { TOO_MANY_STREAMS } from './streams.ts'
import { sendUpgrade } from './upgrades.ts'

type UpstreamEvents = RoundTripService['events'] & {
  readonly relayed: () => void
  readonly failed: (failure: UpstreamFailure) => void
  readonly tunnel: (change: 1 | -1) => void
}

/** `queue` bounds the requests at the device, and the requests that wait for a place there (C25). */
export interface UpstreamDependencies extends RoundTripService, QueuePlaces {
  /** The path of a service of `upstream.routes`; empty for the main service. */
  readonly route: string
  /** How long a tunnel may carry no byte in either direction (ms). */
  readonly tunnelIdleTimeout: number
  /** The maximum of upgrades in progress and open tunnels together. They take no place in `queue`. */
  readonly maxTunnels: number
  /** Upgrades in progress and open tunnels at the device, also those of a service that a reload has replaced. */
  readonly upgrading: { count: number }
  /** The longest request body (bytes); `Infinity`: no bound. */
  readonly maxBody: number
  /** How uploads of unknown length are buffered before they are sent; undefined if they are not. */
  readonly buffering: UploadBuffering | undefined
  /** The sidecar's own account at the device, if it has one. */
  readonly signIn: SignIn | undefined
  readonly events: UpstreamEvents
}

/**
 * Forwards a request or an upgrade to the device, and then tells the listener.
 *
 * @param now ms, monotonic, if the caller has read the clock in this turn
 * @param substitutes only for a request without a body
 */
export type Upstream = (
  exchange: Forward,
  listener: ForwardListener,
  now?: number,
  substitutes?: Substitutes,
) => void

/**
 * After how many seconds a client may ask again for a device that cannot be reached. Postern itself tries each second
 * (`device/breaker.ts`).
 */
const UNREACHED_FOR = 5

/** The refusal of a request that has not reached the device. */
function unreached(failure: UpstreamFailure): Refusal {
  return { kind: 'upstream', failure, retryAfter: UNREACHED_FOR }
}

const NO_UPGRADES: Refusal = {
  kind: 'invalid-request',
  description: 'The device speaks HTTP/1.0, which has no WebSockets.',
}

/** Forwards requests and upgrades to the device. It accepts only requests that the gate admitted (`Forward`). */
export function createUpstream(deps: UpstreamDependencies): Upstream {
  const { queue, learner, longPaths, connections, buffering, breaker, signIn, clock, events } = deps
  const { route, upgrading } = deps
  const idle = new IdleList(clock, deps.tunnelIdleTimeout)
  const isOld = connections.version === '1.0'
  const othersWait = (): boolean => queue.waiting > 0

  /** The refusal if the device is known to be down. */
  function down(exchange: ForwardExchange): Refusal | undefined {
    const failure = breaker.refuse()
    if (failure === undefined) return undefined
    exchange.failure = failure
    events.failed(failure)
    return unreached(failure)
  }

  /** Called from a socket event, where no caller would catch a bug. */
  function onEnd(end: RoundTripEnd, exchange: ForwardExchange): void {
    exchange.leavePlace?.()
    if (learner?.watches) watchNoMore(learner)
    try {
      const whole = end.kind === 'relayed'
      if (whole) events.relayed()
      exchange.listener?.ended(exchange, whole ? undefined : report(end, exchange))
    } catch (bug) {
      exchange.listener?.onBug(exchange, bug)
    }
  }

  /** Reports the end of a request at the device, and returns the refusal for the client. Throws if a bug ended it. */
  function report(
    end: Exclude<RoundTripEnd, { kind: 'relayed' }>,
    exchange: ForwardExchange,
  ): Refusal | undefined {
    if (end.kind === 'abandoned') return undefined
    if (end.kind === 'failed' && end.error === TOO_MANY_STREAMS) return OVERLOADED
    if (end.kind === 'bug' || isBug(end.error)) throw end.error
    const client = bodyFault(end.error)
    if (client !== undefined) return client
    const failure = failureIn(end)
    exchange.failure = failure
    exchange.cause = faultOf(end.error)?.cause ?? ''
    breaker.failed(failure)
    events.failed(failure)
    if (end.kind !== 'failed') return undefined
    // A stale connection may have carried an earlier attempt.
    return isUnreachable(failure) && exchange.attempts === 0
      ? unreached(failure)
      : { kind: 'upstream', failure }
  }

  function enqueue(
    exchange: ForwardExchange,
    listener: ForwardEnd,
    substitutes?: Substitutes,
    now?: number,
  ): void {
    const isLong = longPaths?.any === true && longPaths.has(exchange.classified.target)
    const leave = queue.tryEnter(exchange.client.key, isLong)
    if (leave !== undefined) sendThenLeave(exchange, listener, substitutes, leave, now)
    else guard(waitThenSend(exchange, listener, substitutes), exchange, listener)
  }

  /** Begins to tell the learner of each request at the device, also of those that are already there. */
  function watch(by: Learner): void {
    if (by.watches) return
    by.watches = true
    connections.each((handler) => handler.crowded?.())
  }

  function watchNoMore(by: Learner): void {
    by.watches = queue.waiting > 0 || queue.inside > by.calm.most
  }

  async function waitThenSend(
    exchange: ForwardExchange,
    listener: ForwardEnd,
    substitutes?: Substitutes,
  ): Promise<void> {
    if (learner !== undefined) watch(learner)
    const entry = await waitForPlace(deps, exchange, clock, substitutes?.client)
    if (typeof entry === 'function') sendThenLeave(exchange, listener, substitutes, entry)
    else listener.ended(exchange, entry)
  }

  /**
   * Starts an upload when its first byte has come: a client that sends no byte takes no place. Only then the breaker is asked, because such
   * a client would use up the one probe that shows whether the device is back.
   */
  async function startLater(exchange: ForwardExchange, listener: ForwardListener): Promise<void> {
    const refusal = await exchange.arrival(deps.uploadTimeout).then(() => down(exchange), bodyRefusal)
    if (refusal !== undefined) listener.ended(exchange, refusal)
    else start(exchange, listener)
  }

  function start(exchange: ForwardExchange, listener: ForwardListener): void {
    if (exchange.classified.framing === 'chunked') startUnknown(exchange, listener)
    else enqueue(exchange, listener)
  }

  /** Sends a body of unknown length, buffered or as it comes, and at most `maxBody` of it. */
  function startUnknown(exchange: ForwardExchange, listener: ForwardListener): void {
    const most = deps.maxBody
    const source = {
      [Symbol.asyncIterator]: () => {
        const body = exchange.body(deps.uploadTimeout)
        const bounded =
          most === Number.POSITIVE_INFINITY
            ? body
            : cutOff(body, most, () => listener.refuses(exchange, OVERSIZED_BODY))
        return bounded[Symbol.asyncIterator]()
      },
    }
    if (buffering !== undefined) {
      const send = (substitutes: Substitutes, end: ForwardEnd): void => enqueue(exchange, end, substitutes)
      notify(sendBuffered(exchange, source, buffering, clock, send), exchange, listener)
    } else if (most === Number.POSITIVE_INFINITY) enqueue(exchange, listener)
    // A request that Postern signs in may be sent twice, so the first 64 KiB of its body are kept.
    else
      enqueue(exchange, listener, {
        body: bufferBody(source, exchange.signedIn && signIn !== undefined ? undefined : 0),
      })
  }

  /** Whether the length in the head is too long, and the request is refused because of it. */
  function refusesLength(exchange: ForwardExchange, listener: ForwardListener): boolean {
    const { framing } = exchange.classified
    const isLonger = typeof framing === 'number' && framing > deps.maxBody
    return isLonger && listener.refuses(exchange, OVERSIZED_BODY)
  }

  function sendThenLeave(
    exchange: ForwardExchange,
    listener: ForwardEnd,
    substitutes: Substitutes | undefined,
    leave: Leave,
    now?: number,
  ): void {
    if (learner !== undefined && queue.inside > learner.calm.most) watch(learner)
    exchange.othersWait = othersWait
    exchange.leavePlace = leave
    exchange.listener = listener
    try {
      // The gate decides which requests get the login: one without a valid token gets it on a public path that is signed in only.
      if (!exchange.signedIn || signIn === undefined) forwardToDevice(deps, exchange, onEnd, substitutes, now)
      else if ((substitutes?.client ?? exchange).answered) onEnd({ kind: 'abandoned' }, exchange)
      else sendAs(signIn, exchange, substitutes)
    } catch (bug) {
      leave()
      throw bug
    }
  }

  /** Separate from `sendThenLeave`: the closures would cost each request without a login the context that they share. */
  function sendAs(account: SignIn, exchange: ForwardExchange, substitutes: Substitutes | undefined): void {
    const send = (signedIn: SignedIn, resolve: (end: RoundTripEnd) => void): void =>
      forwardToDevice(deps, exchange, resolve, signedIn)
    sendSignedIn(deps, exchange, account, substitutes, send).then(
      (end) => onEnd(end, exchange),
      (error: unknown) => onEnd({ kind: 'bug', error }, exchange),
    )
  }

  async function upgrade(exchange: ForwardExchange<UpgradeExchange>): Promise<Refusal | undefined> {
    if (isOld) return NO_UPGRADES
    if (upgrading.count >= deps.maxTunnels) return OVERLOADED
    const refusal = down(exchange)
    if (refusal !== undefined) return refusal
    upgrading.count += 1
    exchange.onEnd(() => {
      upgrading.count -= 1
    })
    let tunnels = false
    const onTunnel = (): void => {
      tunnels = true
      breaker.succeeded()
      events.tunnel(1)
    }
    const send = (signedIn: SignedIn | undefined, resolve: (end: RoundTripEnd) => void): void =>
      sendUpgrade(deps, exchange, { ...signedIn, onTunnel, idle }, resolve)
    exchange.watch()
    const end = await (exchange.signedIn && signIn !== undefined
      ? sendSignedIn(deps, exchange, signIn, undefined, send)
      : new Promise<RoundTripEnd>((resolve) => send(undefined, resolve)))
    if (tunnels) events.tunnel(-1)
    if (end.kind !== 'relayed') return report(end, exchange)
    // The device has refused the upgrade, and its response was relayed.
    if (!tunnels) events.relayed()
    return undefined
  }

  return atForward((exchange, listener: ForwardListener, now?: number, substitutes?: Substitutes) => {
    exchange.route = route
    if (exchange.head.upgrade) {
      // The cast holds because the listener makes an `UpgradeExchange` of each head that asks for an upgrade.
      notify(upgrade(exchange as ForwardExchange<UpgradeExchange>), exchange, listener)
      return
    }
    const { framing } = exchange.classified
    const hasBody = framing !== null
    const broken = hasBody && exchange.broken
    if (isOld && buffering === undefined && framing === 'chunked') {
      listener.ended(exchange, { kind: 'length-required' })
    } else if (hasBody && refusesLength(exchange, listener)) {
      listener.ended(exchange, OVERSIZED_BODY)
    } else if (hasBody && exchange.arrived === 0 && !broken) {
      guard(startLater(exchange, listener), exchange, listener)
    } else {
      const refusal = broken ? BROKEN_BODY : breaker.open ? down(exchange) : undefined
      if (refusal !== undefined) listener.ended(exchange, refusal)
      else if (hasBody) start(exchange, listener)
      else enqueue(exchange, listener, substitutes, now)
    }
  })
}

function guard(work: Promise<void>, exchange: Exchange, listener: ForwardEnd): void {
  work.catch((bug: unknown) => listener.onBug(exchange, bug))
}

function notify(work: Promise<Refusal | undefined>, exchange: Exchange, listener: ForwardEnd): void {
  const told = work.then((refusal) => listener.ended(exchange, refusal))
  guard(told, exchange, listener)
}
