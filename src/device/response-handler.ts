import type { Socket } from 'node:net'
import type { Fields } from '../http/fields.ts'
import type { OutgoingRequest } from '../http1/request-writer.ts'
import type { Http1ResponseHead } from '../http1/response-head.ts'

export interface DeviceRequest extends OutgoingRequest {
  /** Defined if the framing announces a body. */
  readonly body: AsyncIterable<Buffer> | undefined
}

/** The head of the device's final response. */
export interface DeviceHead {
  readonly status: number
  readonly reason: string
  readonly fields: Fields
  /** `HeadMemory` gave this head: `fields` is the same array each time, so results derived from it can be cached. */
  readonly remembered: boolean
  readonly framing?: Http1ResponseHead['framing']
}

/** Receives one response of the device, in this order. One of `end`, `switched` and `failed` is called once, as the last call. */
export interface ResponseHandler {
  /** The connection is open, and the head of the request is sent. */
  sent?(): void
  /** The whole body of the request is sent. */
  uploaded?(): void
  inform(status: number, fields: Fields): void
  head(head: DeviceHead): void
  data(chunk: Buffer): void
  /** Other requests wait for a place at the device. */
  othersWait?(): void
  /** The response is complete. `last` is the piece of the body that came with its end. */
  end(last?: Buffer): void
  /** The device switched to the protocol of an upgrade. `rest` are the first bytes of the tunnel; the other ones are in `device`. */
  switched?(head: DeviceHead, device: Socket, rest: Buffer): void
  /** @param silent the device sent no byte of a response */
  failed(error: unknown, silent: boolean): void
}

/** The handler's control over the response. */
export interface Transfer {
  /** The bytes of the upload that the device has taken; undefined unless it has taken all that the client sent, and waits for more. */
  readonly uploaded: number | undefined
  pause(): void
  resume(): void
  /** Ends the attempt. Closes the connection, unless it is still connecting. Calls `failed` with `error` before it returns. */
  abort(error: unknown): void
}
