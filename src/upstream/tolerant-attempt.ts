import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { Fields } from '../http/fields.ts'
import { LARGEST_ANSWER_HEAD, MOST_INTERIM_ANSWERS, type Transfer } from './answer-handler.ts'
import { createDeadline, type Deadline } from './deadline.ts'
import { DeviceFault } from './failure.ts'
import { agentFor, createProxy } from './http-proxy.ts'
import { MendedConnection } from './mended-connection.ts'
import type { Relay } from './relay.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'

/** One request to the device and its answer. */
export class TolerantAttempt implements Transfer {
  readonly #relay: Relay
  readonly #method: string
  readonly #connection: MendedConnection
  readonly #deadline: Deadline
  readonly #deadlines: UpstreamDeadlines
  #phase: 'connecting' | 'waiting' | 'receiving' | 'over' = 'connecting'
  #response: IncomingMessage | undefined
  #body: Readable | undefined
  #silent = true
  #interim = 0
  #aborted = false

  constructor(relay: Relay, method: string, target: UpstreamTarget, deadlines: UpstreamDeadlines) {
    this.#relay = relay
    this.#method = method
    this.#deadlines = deadlines
    this.#deadline = createDeadline((failure) => this.abort(new DeviceFault(failure)))
    this.#deadline.set(deadlines.connect, 'connection_timeout')
    this.#connection = new MendedConnection(target, method, {
      onConnected: () => {
        this.#phase = 'waiting'
        this.#wait()
      },
      onBytes: () => {
        this.#silent = false
      },
      onInterim: ({ status, fields }) => {
        // `100 Continue`, which nobody asked for, is no progress.
        if (status !== 100) this.#wait()
        this.#inform(status, fields)
      },
    })
    this.#connection.on('error', (error) => this.#fail(error))
  }

  /** Sends the request through `http-proxy-3`. */
  send(path: string, fields: string[], body: AsyncIterable<Buffer> | undefined): void {
    this.#relay.start(this)
    this.#body = Readable.from(body === undefined ? [] : this.#watched(body))
    this.#body.on('error', (error) => this.abort(error))
    const request = new IncomingMessage(new Socket())
    request.url = '/'
    request.method = 'GET'
    const proxy = createProxy()
    proxy.once('proxyRes', (response) => this.#receive(response))
    proxy.web(
      request,
      new ServerResponse(request),
      {
        target: { host: 'device', port: 80 },
        agent: agentFor(this.#connection),
        selfHandleResponse: true,
        method: this.#method,
        buffer: this.#body,
        ssl: requestOptions(path, fields),
      },
      (error) => this.#fail(error),
    )
  }

  abort(error: unknown): void {
    this.#aborted = true
    this.#fail(error)
  }

  pause(): void {
    this.#deadline.clear()
    this.#response?.pause()
  }

  resume(): void {
    this.#wait()
    this.#response?.resume()
  }

  close(): void {
    this.#phase = 'over'
    this.#deadline.clear()
    this.#body?.destroy()
    this.#connection.destroy()
  }

  #receive(response: IncomingMessage): void {
    response.on('error', () => {})
    if (this.#phase === 'over') return
    this.#response = response
    this.#phase = 'receiving'
    this.#wait()
    response.on('data', (chunk: Buffer) => {
      if (this.#phase === 'over') return
      this.#wait()
      this.#relay.data(chunk)
    })
    response.once('close', () => {
      if (this.#phase === 'over') return
      if (response.complete) this.#relay.end()
      else this.#fail(new DeviceFault('http_response_incomplete'))
    })
    this.#relay.head(response.statusCode ?? 0, response.statusMessage ?? '', response.rawHeaders)
  }

  /** As in the strict lane. `MendedConnection` lets no 101 through. */
  #inform(status: number, fields: Fields): void {
    this.#interim += 1
    if (this.#interim > MOST_INTERIM_ANSWERS) this.abort(new DeviceFault('http_protocol_error'))
    else if (status !== 100) this.#relay.inform(status, fields)
  }

  /** What comes after the end of the answer is no fault of the answer. */
  #fail(error: unknown): void {
    if (this.#response?.complete === true && !this.#aborted) return
    // Only the first: a relay that breaks off the client's transfer says, when that has ended, that the client left.
    if (this.#phase === 'over') return
    this.#phase = 'over'
    this.#relay.failed(error, this.#silent)
  }

  #wait(): void {
    if (this.#phase === 'waiting') this.#deadline.set(this.#deadlines.response, 'http_response_timeout')
    if (this.#phase === 'receiving') this.#deadline.set(this.#deadlines.idle, 'http_response_incomplete')
  }

  /** A long upload is no silence of the device's. */
  async *#watched(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
    for await (const chunk of body) {
      this.#wait()
      yield chunk
    }
  }
}

/**
 * `http-proxy-3` writes the options of `http.request` into the object given as `ssl`. It would normalise the path,
 * and group header fields by name; so these two are fixed. `Trailer` and `Expect`, which it treats specially, are
 * hop-by-hop and not there.
 */
function requestOptions(path: string, fields: string[]): object {
  return {
    insecureHTTPParser: true,
    maxHeaderSize: 2 * LARGEST_ANSWER_HEAD,
    get path() {
      return path
    },
    set path(_normalised) {},
    get headers() {
      return fields
    },
    set headers(_grouped) {},
  }
}
