import { STATUS_CODES } from 'node:http'
import type { Upstream } from '../forward/upstream.ts'
import type { OwnEndpoint } from '../http/admission.ts'
import { isNavigation, showsToken } from '../http/browsers.ts'
import type { Admission, Exchange, ForwardListener } from '../http/exchange.ts'
import { fieldLines, fieldValues } from '../http/fields.ts'
import type { LocalResponse, Refusal } from '../http/refusal.ts'
import type { BrowserLogin } from '../oauth/browser-login.ts'
import type { OwnEndpointHandler } from '../oauth/token-endpoint.ts'
import type { Clock } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import type { Admit, GateSettings } from './admit.ts'
import { atGate, type GateExchange } from './gate-exchange.ts'
import type { LiveExchanges } from './live-exchanges.ts'
import { refusalPage } from './refusal-page.ts'
import { type RefusalSettings, refusalResponse } from './refusal-response.ts'
import { requestIdOf } from './request-id.ts'

export interface PassageDependencies {
  readonly admit: Admit
  readonly ownEndpoints: Readonly<Record<OwnEndpoint, OwnEndpointHandler>>
  /** `upstream` is read when a request is admitted: a reload replaces it, and requests end with the one that they began with. */
  readonly device: { readonly upstream: Upstream }
  readonly live: LiveExchanges
  readonly clock: Clock
  /** A reload replaces what it holds. */
  readonly settings: GateSettings & { readonly config: RefusalSettings }
  /** The login page for a browser whose request is refused. Called only if `browser.login` is on. */
  readonly loginPageFor: BrowserLogin['pageFor']
  /** Each is called once for each exchange, when it has ended, at `wall` (ms since the Unix epoch). */
  readonly records: readonly ((exchange: Exchange, wall: number) => void)[]
  /** Called with a refusal that has no record: the bytes were no valid request, or the gate failed. */
  readonly onUnrecordedRefusal: (refusal: Refusal) => void
  /** Called with the error of a bug, for the operator. The client gets `server_error`. */
  readonly onBug: (error: unknown) => void
}

type GateAdmission = Admission<GateExchange>

/** An unread request body up to this size (bytes) is drained to keep the connection; a larger one closes it. */
const DRAINED_BODY = 8 * 1024

const SERVER_ERROR: Refusal = { kind: 'server-error' }

/** The sidecar stops before the device gets the request. A restart takes a few seconds. */
const STOPPING: Refusal = { kind: 'overloaded', retryAfter: 5 }

/** Handles the requests of a listener: each is refused, served by an own endpoint, or forwarded, and recorded when it has ended. */
export function createPassage(deps: PassageDependencies) {
  const { admit, ownEndpoints, device, live, clock, settings, records } = deps
  let stopped = false

  /** What happens to a request behind the gate. */
  const listener: ForwardListener = {
    ended: atGate((exchange, refusal: Refusal | undefined) => {
      if (refusal !== undefined) refuse(exchange, refusal, false)
    }),
    onBug: atGate((exchange, bug: unknown) => {
      deps.onBug(bug)
      end(exchange, SERVER_ERROR, true)
    }),
    refuses: atGate((exchange, refusal: Refusal) => {
      if (!settings.gate.enforce) {
        exchange.wouldRefuse ??= refusal
        return false
      }
      // The device has begun to answer an upload that still goes on: the response is cut.
      if (exchange.answered) exchange.endedFor = refusal
      return true
    }),
  }

  function pass(exchange: GateExchange): void {
    let admission: Later<GateAdmission>
    try {
      admission = admit(exchange)
    } catch (error) {
      gateFailed(exchange, error)
      return
    }
    if (admission instanceof Promise) void passLater(exchange, admission)
    else {
      begin(admission)
      follow(admission, admission.start)
    }
  }

  /** While the lookup is pending, the client may leave, its grant may be revoked, and a reload may end what it no longer admits. */
  async function passLater(exchange: GateExchange, asked: Promise<GateAdmission>): Promise<void> {
    const meanwhile = live.watch()
    const admission = await asked.catch((error: unknown) => gateFailed(exchange, error))
    meanwhile.close()
    if (admission === undefined) return
    exchange.lookup = clock.monotonic() - exchange.start
    begin(admission)
    const refusal = admission.kind === 'refused' ? undefined : meanwhile.judge(admission)
    if (refusal !== undefined) endFor(exchange, refusal)
    if (!exchange.answered) follow(admission, exchange.start + exchange.lookup)
  }

  /** From now on the exchange is recorded, its grant may be revoked, and a reload judges it anew. */
  function begin(exchange: GateAdmission): void {
    exchange.requestId = requestIdOf(exchange.head.survey.requestId, exchange.client.peerTrusted)
    if (exchange.kind !== 'refused') live.add(exchange)
    if (exchange.kind === 'forward' && exchange.grant !== undefined && exchange.memory !== undefined)
      exchange.memory.client.grant = exchange.grant
    if (exchange.ended) record(exchange)
    else exchange.recorder = recorder
  }

  function record(exchange: GateExchange): void {
    if (exchange.kind !== 'refused') live.delete(exchange)
    exchange.duration = clock.monotonic() - exchange.start
    const wall = clock.wall()
    for (const record of records) record(exchange, wall)
  }
  const recorder = atGate(record)

  function follow(admission: GateAdmission, now: number): void {
    if (admission.kind === 'refused') refuse(admission, admission.refusal, admission.classified.ambiguous)
    else if (stopped) refuse(admission, STOPPING, true)
    else if (admission.kind === 'forward') {
      try {
        device.upstream(admission, listener, now)
      } catch (bug) {
        listener.onBug(admission, bug)
      }
    } else serveOwnEndpoint(admission).catch((bug: unknown) => listener.onBug(admission, bug))
  }

  /**
   * Responds to a request on which the gate failed because of a bug. It is counted but not recorded, because nothing was decided about it.
   */
  function gateFailed(exchange: GateExchange, error: unknown): undefined {
    exchange.requestId = requestIdOf(exchange.head.survey.requestId, exchange.client.peerTrusted)
    deps.onBug(error)
    deps.onUnrecordedRefusal(SERVER_ERROR)
    exchange.respond(shownTo(exchange, SERVER_ERROR, refusalResponse(SERVER_ERROR, settings.config)), true)
  }

  async function serveOwnEndpoint(exchange: GateExchange): Promise<void> {
    const result = await ownEndpoints[exchange.classified.ownEndpoint ?? 'token'](exchange)
    // A body that is too large may have arrived whole, but a request behind it is not read.
    if ('kind' in result) return refuse(exchange, result, result.kind === 'content-too-large')
    exchange.grant = result.grant
    exchange.respond(result.response)
  }

  function refuse(exchange: GateExchange, refusal: Refusal, close: boolean): void {
    if (exchange.answered) return
    exchange.refusal = refusal
    const response = refusalResponse(refusal, settings.config)
    // A request of a program is spared the call.
    const shown = exchange.head.survey.mayNavigate ? shownTo(exchange, refusal, response) : response
    exchange.respond(shown, close || leavesBody(exchange))
  }

  /** The response as the client should see it: a browser that opens a page gets a page (C18), every other client the same one. */
  function shownTo(exchange: Exchange, refusal: Refusal, response: LocalResponse): LocalResponse {
    const { head } = exchange
    if (!isNavigation(head)) return response
    const { browser } = settings.gate
    const login = browser ? deps.loginPageFor(exchange, refusal, response) : undefined
    if (login !== undefined) return login
    const isOfProgram = refusal.kind === 'unauthorized' ? showsToken(head) : isTokenRequest(exchange)
    return isOfProgram
      ? response
      : refusalPage(exchange, refusal, response, { realm: settings.config.realm, browser })
  }

  /** Refuses a request whose response has not begun. Cuts a response that has begun. */
  function end(exchange: GateExchange, refusal: Refusal, close = false): void {
    if (exchange.answered) exchange.cut()
    else refuse(exchange, refusal, close)
  }

  function endFor(exchange: GateExchange, refusal: Refusal): void {
    exchange.endedFor = refusal
    if (exchange.abandon !== undefined) exchange.abandon()
    else end(exchange, refusal)
  }

  live.onEnd(endFor)
  return {
    /** Takes a request or an upgrade. */
    request: atGate(pass),
    /**
     * Ends all requests when the grace of a stop is over. Requests that have not reached the device are refused, so a client may repeat
     * them elsewhere. The others are cut. All refusals come before the first cut: a cut frees a place, and a waiting request would start in
     * it. Every later request is refused. Resolves with the number of refusals when they are sent.
     */
    async stop(): Promise<number> {
      stopped = true
      const waiting = [...live.all()].filter(({ answered, attempts }) => !answered && attempts === 0)
      const sent = waiting.map((exchange) => new Promise<void>((resolve) => exchange.onEnd(resolve)))
      for (const exchange of waiting) refuse(exchange, STOPPING, true)
      for (const exchange of [...live.all()]) if (exchange.refusal === undefined) exchange.cut()
      await Promise.all(sent)
      return sent.length
    },
    /** The complete HTTP/1 response for bytes that are not a valid request (C20). Counts it: call it once per response. */
    refusalMessage(refusal: Refusal): string {
      deps.onUnrecordedRefusal(refusal)
      const { status, fields, body } = refusalResponse(refusal, settings.config)
      const lines = fieldLines([...fields, 'Connection', 'close'])
      return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`
    },
  }
}

/** Errors of the token endpoints are JSON (RFC 6749 §5.2), unless the request certainly comes from a browser: see `isNavigation`. */
function isTokenRequest({ head, classified: { ownEndpoint } }: Exchange): boolean {
  const isOAuth = ownEndpoint === 'token' || ownEndpoint === 'revocation'
  return isOAuth && fieldValues(head.fields, 'sec-fetch-mode').length === 0
}

/** Whether the unread request body may be larger than the sidecar drains. */
function leavesBody({ classified: { framing }, unread }: Exchange): boolean {
  if (framing === null || !unread) return false
  return framing === 'chunked' || framing > DRAINED_BODY
}
