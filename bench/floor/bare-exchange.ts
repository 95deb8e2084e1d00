import { Exchange, type RequestHead } from '../../src/http/exchange.ts'
import type { Fields } from '../../src/http/fields.ts'
import { requestFraming, surveyFields } from '../../src/http/head-survey.ts'

/** An exchange without a connection and without a request body: records the status. */
export class BareExchange extends Exchange {
  readonly unread = false
  readonly broken = false
  readonly arrived: number = Number.POSITIVE_INFINITY

  get answered(): boolean {
    return this.status !== 0
  }

  arrival(): never {
    throw new Error('no request has a body')
  }

  body(): never {
    throw new Error('no request has a body')
  }

  reply({ status }: { readonly status: number }): void {
    this.status = status
    this.settle('complete')
  }

  inform(): void {}

  begin({ status }: { readonly status: number }): void {
    this.status = status
  }

  write(): boolean {
    return true
  }

  end(): void {
    this.settle('complete')
  }

  cut(): void {}

  onDrain(): void {}

  onBroken(): void {}
}

type Given = Pick<
  RequestHead,
  'version' | 'secure' | 'method' | 'target' | 'authority' | 'peer' | 'localPort'
>

/** The head of a request without a body. */
export function headOf(given: Given, fields: Fields): RequestHead {
  const survey = surveyFields(fields)
  return {
    version: given.version,
    secure: given.secure,
    method: given.method,
    target: given.target,
    authority: given.authority,
    fields,
    peer: given.peer,
    localPort: given.localPort,
    upgrade: false,
    framing: requestFraming(given.version, survey, true),
    survey,
    classified: undefined,
    presented: undefined,
    outgoing: undefined,
    shown: undefined,
    logged: undefined,
  }
}
