import { fieldValues } from '../../src/http/fields.ts'

/** A request to send. Only what is given here goes out, but for the fields named below. */
export interface Request {
  /** `GET`, or `POST` when there is a body. */
  readonly method?: string
  /** The target, byte for byte; `/` unless told. */
  readonly path?: string
  /** Names and values in turn, as they go out. HTTP/2 lower-cases the names and does nothing else. */
  readonly fields?: readonly string[]
  /** Whole: a `Content-Length` is added. A list: a body of unknown length (chunked in HTTP/1), one write for each piece. */
  readonly body?: string | Buffer | readonly (string | Buffer)[]
  /** Leaves the request body open for `write` and `end` of the exchange. Chunked in HTTP/1, unless `fields` frame it. */
  readonly open?: boolean
  /** The host asked for, in `Host` or `:authority`, instead of that of the URL; `null` sends none. */
  readonly authority?: string | null
  /** After how many ms without the end of the answer to give up; 10 s unless told. */
  readonly timeout?: number
}

export interface Head {
  readonly version: '1.0' | '1.1' | '2'
  readonly status: number
  /** Empty in HTTP/2. */
  readonly reason: string
  /** As on the wire: order, repeats and casing. */
  readonly fields: readonly string[]
}

/** An answer as it came. */
export class Response implements Head {
  readonly version: Head['version']
  readonly status: number
  readonly reason: string
  readonly fields: readonly string[]
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** The 1xx answers before it. */
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

  /** The value of a field that must stand at most once; fails when it is repeated. */
  header(name: string): string | undefined {
    const values = this.values(name)
    if (values.length > 1) throw new Error(`${name} is there ${values.length} times: ${values.join(' | ')}`)
    return values[0]
  }

  /** Every value of a field, in order. */
  values(name: string): readonly string[] {
    return fieldValues(this.fields, name.toLowerCase())
  }

  /** The body as JSON. Fails with the text when it is none. */
  json(): Record<string, unknown> {
    try {
      return JSON.parse(this.text)
    } catch {
      throw new Error(`not JSON: ${this.status} ${JSON.stringify(this.text)}`)
    }
  }
}

/** The answer broke off: what a client must see when the device was cut. `partial` holds what had come, if a head had. */
export class BrokenTransfer extends Error {
  readonly partial: Response | undefined

  constructor(why: string, partial: Response | undefined) {
    super(
      partial === undefined
        ? `${why}, before any answer`
        : `${why}, after ${partial.body.length} bytes of body`,
    )
    this.partial = partial
  }
}

/** One request under way. */
export interface Exchange {
  /** The head of the final answer. */
  readonly head: Promise<Head>
  /** The whole answer; rejects with `BrokenTransfer` if it breaks off. */
  readonly response: Promise<Response>
  /** The 1xx answers so far. */
  readonly informational: readonly Head[]
  /** The body so far. */
  readonly received: Buffer
  /** Waits until the response body holds the text, and resolves with the body so far. */
  waitFor(text: string): Promise<string>
  /** Waits for a 1xx answer, by its status. */
  waitForInformational(status: number): Promise<Head>
  /** Sends a piece of an `open` request body. False when the connection is full: see `drained`. */
  write(chunk: string | Buffer): boolean
  /** Resolves when `write` may go on. */
  drained(): Promise<void>
  /** Ends an `open` request body. */
  end(chunk?: string | Buffer): void
  /** Stops reading the answer: a client slower than the device. In HTTP/1 that holds the whole connection. */
  pause(): void
  resume(): void
  /** Leaves: closes the connection in HTTP/1, resets the stream in HTTP/2. */
  abort(): void
}

/** A connection that stays open. In HTTP/1 requests are pipelined if the last answer is not awaited. */
export interface Connection {
  /** Sends a request without waiting for its answer. */
  start(request: Request): Exchange
  /** Sends a request and waits for the whole answer. */
  send(request: Request): Promise<Response>
  /** Resolves when the connection has been closed by either side. */
  readonly closed: Promise<void>
  close(): void
}
