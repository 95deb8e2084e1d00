import { LiveExchange } from '../../src/gate/live-exchanges.ts'
import type { Forward } from '../../src/http/admission.ts'
import type { RequestHead } from '../../src/http/exchange.ts'
import type { Fields } from '../../src/http/fields.ts'
import type { Leave } from '../../src/system/bounded-queue.ts'

/** A whole response of the device. Its body is Latin-1. */
export interface Answer {
  readonly status: number
  readonly reason: string
  readonly fields: Fields
  readonly body: string
}

/** The side of an exchange that asked. */
export interface FloorClient {
  /** Answers with a response as the device wrote it; only its lines are looked at. */
  relay(text: string): void
  /** Answers with a response whose fields are those of the client's connection. */
  answer(answer: Answer, exchange: FloorExchange): void
  cut(): void
}

/** One request without a body on its way through the floor. */
export class FloorExchange extends LiveExchange {
  readonly grant = 'floor'
  readonly client: FloorClient
  /** The field value, scheme included. */
  readonly authorization: string
  /** The head for the device, where lines are copied; empty where `head` is written instead. */
  readonly text: string
  /** Undefined where nothing that is switched on asks for it. */
  readonly head: RequestHead | undefined
  started = 0
  requestId = ''
  leave: Leave | undefined
  admission: Forward | undefined

  constructor(client: FloorClient, authorization: string, text: string, head: RequestHead | undefined) {
    super()
    this.client = client
    this.authorization = authorization
    this.text = text
    this.head = head
  }

  override revoke(): void {
    this.client.cut()
  }
}
