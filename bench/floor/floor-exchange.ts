import type { LiveExchange } from '../../src/gate/live-exchanges.ts'
import type { Forward, RequestHead } from '../../src/http/exchange.ts'
import type { Fields } from '../../src/http/fields.ts'
import type { Leave } from '../../src/system/bounded-queue.ts'

/** A whole response of the device. Its body is Latin-1. */
export interface DeviceResponse {
  readonly status: number
  readonly reason: string
  readonly fields: Fields
  readonly body: string
}

/** The client side of an exchange. */
export interface FloorClient {
  /** Sends a response of the device whose lines are rewritten but not parsed. */
  relay(text: string): void
  /** Sends a response whose fields are those for the client. */
  respond(response: DeviceResponse, exchange: FloorExchange): void
  cut(): void
}

/** One request without a body, and its response. */
export class FloorExchange implements LiveExchange {
  readonly grant = 'floor'
  readonly client = { address: '' }
  readonly start = 0
  readonly streamAt = 0
  readonly side: FloorClient
  /** The field value, scheme included. */
  readonly authorization: string
  /** Head for the device, if the floor copies lines; empty if it writes `head`. */
  readonly text: string
  /** Undefined if no enabled capability needs it. */
  readonly head: RequestHead | undefined
  started = 0
  requestId = ''
  leave: Leave | undefined
  request: Forward | undefined
  newer: this | undefined
  older: this | undefined

  constructor(side: FloorClient, authorization: string, text: string, head: RequestHead | undefined) {
    this.side = side
    this.authorization = authorization
    this.text = text
    this.head = head
  }
}
