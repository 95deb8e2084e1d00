import { connect, type Socket } from 'node:net'
import { HeadMemory } from '../../src/http1/head-memory.ts'
import { type ResponseEvents, ResponseReader } from '../../src/http1/response-reader.ts'
import type { Capability } from './capabilities.ts'
import { createDeadline, type Deadline } from './deadline.ts'
import type { DeviceResponse, FloorExchange } from './floor-exchange.ts'

/** The defaults of Postern (ms). */
const RESPONSE_TIMEOUT = 30_000
const BODY_TIMEOUT = 60_000

/** Shared by all connections: what is read is decoded immediately. */
const BUFFER = Buffer.allocUnsafeSlow(64 * 1024)

/** What a link needs of the floor. */
interface LinkOwner {
  readonly strict: boolean
  has(capability: Capability): boolean
  write(socket: Socket, text: string): void
  free(link: DeviceLink): void
  relayText(exchange: FloorExchange, text: string): void
  onResponse(exchange: FloorExchange, response: DeviceResponse): void
}

/** A connection to the device. It carries one exchange at a time; the floor never closes it. */
export class DeviceLink {
  readonly #floor: LinkOwner
  readonly #socket: Socket
  readonly #reader: ResponseReader | undefined
  readonly #responseLimit: Deadline | undefined
  readonly #bodyLimit: Deadline | undefined
  #exchange: FloorExchange | undefined
  #body = ''

  constructor(floor: LinkOwner, port: number) {
    this.#floor = floor
    const limit = (time: number) =>
      floor.has('deadlines') ? createDeadline(time, () => this.#late()) : undefined
    this.#responseLimit = limit(RESPONSE_TIMEOUT)
    this.#bodyLimit = limit(BODY_TIMEOUT)
    this.#reader = floor.strict ? this.#strictReader() : undefined
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: BUFFER,
        callback: (length) => {
          if (this.#reader === undefined) this.#receive(BUFFER.toString('latin1', 0, length))
          else this.#reader.receive(BUFFER, length, Number.POSITIVE_INFINITY)
          return true
        },
      },
    })
    this.#socket.on('error', () => {}).on('close', () => this.#exchange?.side.cut())
  }

  /** @param text head of the request */
  send(exchange: FloorExchange, text: string): void {
    this.#exchange = exchange
    this.#body = ''
    this.#reader?.expect(exchange.head?.method ?? '', 'strict')
    this.#responseLimit?.restart()
    this.#floor.write(this.#socket, text)
  }

  /** Each response arrives in one piece: the device is one of the bench. */
  #receive(text: string): void {
    const exchange = this.#take()
    this.#bodyLimit?.restart()
    this.#floor.relayText(exchange, text)
  }

  #strictReader(): ResponseReader {
    const events: ResponseEvents = {
      onInterim() {},
      onHead: () => this.#bodyLimit?.restart(),
      onBody: (chunk) => {
        this.#body += chunk.toString('latin1')
      },
      onWhole: (last) => {
        const { status = 0, reason = '', fields = [] } = reader.head ?? {}
        const body = last === undefined ? this.#body : this.#body + last.toString('latin1')
        this.#floor.onResponse(this.#take(), { status, reason, fields, body })
      },
      onFault: () => this.#socket.destroy(),
      onMalformed() {},
    }
    const reader = new ResponseReader(events, new HeadMemory(1))
    return reader
  }

  /** Returns the exchange that the response belongs to. The link is free for another. */
  #take(): FloorExchange {
    const exchange = this.#exchange
    if (exchange === undefined) throw new Error('response without a request')
    this.#exchange = undefined
    this.#floor.free(this)
    return exchange
  }

  #late(): void {
    if (this.#exchange !== undefined) this.#socket.destroy()
  }
}
