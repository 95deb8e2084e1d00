import type { Socket } from 'node:net'
import type { RequestHead } from '../../src/http/exchange.ts'
import { fieldLines } from '../../src/http/fields.ts'
import { HeadReader } from '../../src/http1/head-reader.ts'
import { type ConnectionFacts, interpretRequest } from '../../src/http1/request-head.ts'
import { renderHead } from '../../src/http1/response-writer.ts'
import { createDeadline, type Deadline } from './deadline.ts'
import type { Floor } from './floor.ts'
import { type DeviceResponse, type FloorClient, FloorExchange } from './floor-exchange.ts'
import { rewriteRequest, rewriteResponse } from './lines.ts'

/** The defaults of Postern (ms, bytes, number of fields, bytes). */
export const IDLE_TIMEOUT = 60_000
const MAX_HEAD_SIZE = 16 * 1024
export const MAX_FIELDS = 100
const MAX_UNREAD = 1024 * 1024

const KEEP_ALIVE = 'Connection: keep-alive\r\n'

/** An HTTP/1.1 client that sends each request in one piece, and the next one after the response. */
export class Http1Client implements FloorClient {
  readonly #floor: Floor
  readonly #socket: Socket
  readonly #reader: HeadReader | undefined
  readonly #idle: Deadline | undefined
  readonly #capped: boolean
  readonly #from: ConnectionFacts

  constructor(floor: Floor, socket: Socket, secure: boolean) {
    const { remoteAddress: peer = '', localPort = 0 } = socket
    this.#floor = floor
    this.#socket = socket
    this.#reader = floor.strict ? new HeadReader('requests') : undefined
    this.#idle = floor.has('deadlines') ? createDeadline(IDLE_TIMEOUT, () => this.cut()) : undefined
    this.#capped = floor.has('caps')
    this.#from = { secure, peer, localPort, redirects: false }
    socket.on('error', () => {}).on('close', () => this.#idle?.close())
    socket.on('data', (bytes: Buffer) => this.#receive(bytes))
  }

  relay(text: string): void {
    this.#send(rewriteResponse(text, fieldLines(this.#floor.limitFields())))
  }

  respond({ status, reason, fields, body }: DeviceResponse, { head }: FloorExchange): void {
    const facts = {
      method: head?.method ?? '',
      oldClient: false,
      keepAliveFields: KEEP_ALIVE,
      date: '',
      own: '',
    }
    this.#send(renderHead({ status, reason, fields }, body.length, facts).text + body)
  }

  cut(): void {
    this.#socket.destroy()
  }

  #receive(bytes: Buffer): void {
    if (this.#capped && (bytes.length > MAX_HEAD_SIZE || this.#socket.writableLength > MAX_UNREAD)) {
      this.cut()
      return
    }
    if (this.#reader === undefined) {
      const { authorization, rewritten } = rewriteRequest(bytes.toString('latin1'))
      this.#floor.pass(new FloorExchange(this, authorization, rewritten, undefined))
      return
    }
    const head = this.#read(bytes, this.#reader)
    if (head === undefined || head.fields.length > 2 * MAX_FIELDS) this.cut()
    else this.#floor.pass(new FloorExchange(this, head.survey.authorization[0] ?? '', '', head))
  }

  #read(bytes: Buffer, reader: HeadReader): RequestHead | undefined {
    if (reader.read(bytes, 0, bytes.length) !== 'done') return undefined
    return interpretRequest(reader.takeRequest(), this.#from)
  }

  #send(text: string): void {
    this.#idle?.restart()
    this.#floor.write(this.#socket, text)
  }
}
