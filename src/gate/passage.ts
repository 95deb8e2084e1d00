import { STATUS_CODES } from 'node:http'
import type { Admission, Refused, Service } from '../http/admission.ts'
import type { Clock } from '../http/clock.ts'
import type { Exchange, ExchangeRecord, UpgradeExchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { TokenEndpoint } from '../oauth/token-endpoint.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Admit } from './admit.ts'
import type { LiveExchanges } from './live-exchanges.ts'
import { refusalReply, type StatusCodes } from './refusal-reply.ts'

export interface PassageDependencies {
  readonly admit: Admit
  /** What the sidecar answers itself. */
  readonly services: Readonly<Record<Service, TokenEndpoint>>
  readonly upstream: Upstream
  readonly live: LiveExchanges
  readonly clock: Clock
  readonly answers: () => { readonly statusCodes: StatusCodes; readonly realm: string }
  readonly record: (record: ExchangeRecord) => void
  /** A bug: the client gets `server_error`, the operator the cause. */
  readonly onBug: (error: unknown) => void
}

/** The way of one request through the house: admitted, answered or forwarded, recorded. */
export interface Passage {
  request(exchange: Exchange): void
  upgrade(exchange: UpgradeExchange): void
  /** The complete HTTP/1 message that answers bytes which never became a request (C20). */
  answerGarbage(refusal: Refusal): string
}

/** A body up to this size (bytes) that nobody wants is read off the connection to keep it; a larger one ends it. */
const SWALLOWED_BODY = 8 * 1024

export function createPassage(deps: PassageDependencies): Passage {
  const { admit, services, upstream, live, clock } = deps

  function pass<E extends Exchange>(
    exchange: E,
    forward: (admission: Forwardable, exchange: E) => Promise<Refusal | undefined>,
  ): void {
    const start = clock.monotonic()
    let admission: Admission
    try {
      admission = admit(exchange.head)
    } catch (error) {
      deps.onBug(error)
      exchange.reply(refusalReply({ kind: 'server-error' }, deps.answers()), { close: true })
      return
    }

    let refused: Refusal | undefined
    const { endpoint, client } = admission
    exchange.onEnd((outcome) =>
      deps.record({
        head: exchange.head,
        endpoint,
        client,
        refusal: refused,
        wouldRefuse: admission.kind === 'forward' ? admission.wouldRefuse : undefined,
        outcome,
        duration: clock.monotonic() - start,
      }),
    )

    const refuse = (refusal: Refusal, close: boolean): void => {
      if (exchange.answered) return
      refused = refusal
      const reply = refusalReply(refusal, deps.answers())
      exchange.reply(
        { ...reply, fields: [...reply.fields, ...admission.limitFields] },
        { close: close || leavesBody(admission, exchange) },
      )
    }

    if (admission.kind === 'forward') {
      live.add(admission.grant, exchange, () => refuse({ kind: 'unauthorized', cause: 'revoked' }, false))
    }
    if (admission.kind === 'refused') refuse(admission.refusal, admission.close)
    else {
      const work =
        admission.kind === 'forward' ? forward(admission, exchange) : answerToken(admission, exchange, refuse)
      work
        .then((refusal) => {
          if (refusal !== undefined) refuse(refusal, false)
        })
        .catch((error: unknown) => {
          deps.onBug(error)
          if (exchange.answered) exchange.cut()
          else refuse({ kind: 'server-error' }, true)
        })
    }
  }

  async function answerToken(
    admission: TokenAdmission,
    exchange: Exchange,
    refuse: (refusal: Refusal, close: boolean) => void,
  ): Promise<undefined> {
    const answer = await services[admission.service](admission, exchange)
    if (answer.kind === 'refused') refuse(answer.refusal, answer.close)
    else {
      const { reply } = answer
      exchange.reply({ ...reply, fields: [...reply.fields, ...admission.limitFields] })
    }
  }

  return {
    request: (exchange) => pass(exchange, upstream.forward),
    upgrade: (exchange) => pass(exchange, upstream.upgrade),
    answerGarbage(refusal) {
      const { status, fields, body } = refusalReply(refusal, deps.answers())
      const lines = fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${fields[i + 1]}\r\n`] : []))
      return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}Connection: close\r\n\r\n${body}`
    },
  }
}

type Forwardable = Extract<Admission, { kind: 'forward' }>
type TokenAdmission = Extract<Admission, { kind: 'token-endpoint' }>

/** Whether bytes may still come that would have to be read only to be thrown away. */
function leavesBody({ framing }: Pick<Refused, 'framing'>, exchange: Exchange): boolean {
  if (framing === null || !exchange.unread) return false
  return framing === 'chunked' || framing > SWALLOWED_BODY
}
