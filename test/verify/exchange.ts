/** The two kinds of endpoints that have limits of their own. */
export type Endpoint = 'api' | 'oauth'

/** A request to the documented server, whichever version of HTTP it came in. */
export interface Incoming {
  readonly method: string
  /** As it was sent, without the query. */
  readonly path: string
  /** From the question mark on; empty if there is none. */
  readonly query: string
  /** Every value of every field, by lower-case name. In HTTP/2, `host` is `:authority`. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly version: '1' | '2'
  /** Address of the client. */
  readonly address: string
  /** The same object for every request of one connection. */
  readonly connection: object
  /** The body, as latin1; it is read at the first call. Undefined if it is longer than a form may be. */
  body(): Promise<string | undefined>
}

/** A whole response. */
export interface Reply {
  readonly status: number
  /** A list is sent as one field line for each value. */
  readonly fields: Readonly<Record<string, string | readonly string[]>>
  /** Empty for HEAD: the server drops it. */
  readonly body: string
}

/** In place of a response, the connection breaks. */
export const BROKEN_OFF: Reply = { status: 0, fields: {}, body: '' }

/** In place of a response over HTTP/2, REFUSED_STREAM says that nothing was done with the request. */
export const UNPROCESSED: Reply = { status: -1, fields: {}, body: '' }

export type Answer = (request: Incoming) => Promise<Reply>

/** The value of a field that was sent exactly once; otherwise undefined. */
export function onlyValue({ fields }: Incoming, name: string): string | undefined {
  const values = fields.get(name)
  return values?.length === 1 ? values[0] : undefined
}

/** A JSON response. */
export function json(status: number, value: unknown, fields: Reply['fields'] = {}): Reply {
  return { status, fields: { 'Content-Type': 'application/json', ...fields }, body: JSON.stringify(value) }
}

/** Fields that keep a response about tokens out of every cache (RFC 6749 §5.1). */
const UNCACHED = { 'Cache-Control': 'no-store', Pragma: 'no-cache' }

/** A JSON response that no cache may keep. */
export function uncached(status: number, value: unknown, fields: Reply['fields'] = {}): Reply {
  return json(status, value, { ...UNCACHED, ...fields })
}

/** An OAuth error (RFC 6749 §5.2). */
export function oauthError(error: string, description: string, fields: Reply['fields'] = {}): Reply {
  return uncached(400, { error, error_description: description }, fields)
}
