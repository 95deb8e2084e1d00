import { fieldValues } from '../../src/http/fields.ts'

/** A request to send. Only what is set here is sent, except for the fields named below. */
export interface Request {
  /** `GET`, or `POST` when there is a body. */
  readonly method?: string
  /** The target, byte for byte; default `/`. */
  readonly path?: string
  /** Names and values in turn, as they are sent. HTTP/2 lower-cases the names and changes nothing else. */
  readonly fields?: readonly string[]
  /** Text or a buffer gets a `Content-Length`. A list is a body of unknown length (chunked in HTTP/1), one write per piece. */
  readonly body?: string | Buffer | readonly (string | Buffer)[]
  /** Leaves the request body open for `Exchange.write` and `end`. Chunked in HTTP/1, unless `fields` set the framing. */
  readonly open?: boolean
  /** The value of `Host` or `:authority`; default: that of the URL; `null` sends none. */
  readonly authority?: string | null
  /** When it aborts, the client gives up: the request breaks off. */
  readonly signal?: AbortSignal
}

export interface Head {
  readonly version: '1.0' | '1.1' | '2'
  readonly status: number
  /** Empty in HTTP/2. */
  readonly reason: string
  /** Names and values in turn; order, repeats and casing as on the wire. */
  readonly fields: readonly string[]
}

/** A complete response. */
export class Response implements Head {
  readonly version: Head['version']
  readonly status: number
  readonly reason: string
  readonly fields: readonly string[]
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** The 1xx responses before it. */
  readonly informational: readonly Head[]

  constructor(head: Head, body: Buffer, trailers: readonly string[], informational: readonly Head[]) {
    this.version = head.version
    this.status = head.status
    this.reason = head.reason
    this.fields = head.fields
    this.body = body
    this.trailers = trailers
    this.informational = informational
  }

  get text(): string {
    return this.body.toString('utf8')
  }

  /** The value of a field that may occur once at most; fails when it is repeated. */
  header(name: string): string | undefined {
    const values = this.values(name)
    if (values.length > 1) throw new Error(`${name} occurs ${values.length} times: ${values.join(' | ')}`)
    return values[0]
  }

  /** Every value of a field, in order. */
  values(name: string): readonly string[] {
    return fieldValues(this.fields, name.toLowerCase())
  }

  /** The body as JSON. Fails with the text when it is not JSON. */
  json(): Record<string, unknown> {
    try {
      return JSON.parse(this.text)
    } catch {
      throw new Error(`not JSON: ${this.status} ${JSON.stringify(this.text)}`)
    }
  }
}

/** The response broke off: what a client must see when the device is cut. `partial` is set if the head had arrived. */
export class BrokenTransfer extends Error {
  readonly partial: Response | undefined

  constructor(why: string, partial: Response | undefined) {
    super(
      partial === undefined
        ? `${why}, before any response`
        : `${why}, after ${partial.body.length} bytes of body`,
    )
    this.partial = partial
  }
}

/** One request in flight. */
export interface Exchange {
  /** The head of the final response. */
  readonly head: Promise<Head>
  /** The complete response; rejects with `BrokenTransfer` if it breaks off. */
  readonly response: Promise<Response>
  /** The 1xx responses so far. */
  readonly informational: readonly Head[]
  /** The body so far. */
  readonly received: Buffer
  /** Waits until the response body contains the text, and resolves with the body so far. */
  waitFor(text: string): Promise<string>
  /** Waits for a 1xx response with this status. */
  waitForInformational(status: number): Promise<Head>
  /** Sends a piece of an `open` request body. False when the send buffer is full: see `drained`. */
  write(chunk: string | Buffer): boolean
  /** Resolves when the send buffer accepts data again. */
  drained(): Promise<void>
  /** Ends an `open` request body. */
  end(chunk?: string | Buffer): void
  /** Stops reading the response, as a client that is slower than the device. In HTTP/1 that stops the whole connection. */
  pause(): void
  resume(): void
  /** Aborts the exchange: resets the connection in HTTP/1, the stream in HTTP/2. */
  abort(): void
}

/** A connection that stays open. In HTTP/1, requests are pipelined unless the test awaits the previous response. */
export interface Connection {
  /** Sends a request without waiting for its response. */
  start(request: Request): Exchange
  /** Sends a request and waits for the complete response. */
  send(request: Request): Promise<Response>
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>
  close(): void
}
