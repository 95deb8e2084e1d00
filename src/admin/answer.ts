import type { IncomingMessage, ServerResponse } from 'node:http'
import { UNIX_PEER } from '../gate/client-address.ts'
import { normalizeAddress } from '../http/ip.ts'

/** A complete response of the admin listener. */
export interface Answer {
  readonly status: number
  /** The media type; undefined if there is no body. */
  readonly type?: string
  /** Undefined with a type: the answer to HEAD for a stream, which has no length. */
  readonly body?: string | Buffer
  /** Further fields. `Cache-Control` is `no-store` unless it is among them. */
  readonly fields?: Readonly<Record<string, string>>
}

/** A JSON document on one line. */
export function json(status: number, value: object, fields: Readonly<Record<string, string>> = {}): Answer {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n`, fields }
}

/** An error: a stable code, and a sentence for people. */
export function errorAnswer(
  status: number,
  error: string,
  description: string,
  fields: Readonly<Record<string, string>> = {},
): Answer {
  return json(status, { error, error_description: description }, fields)
}

/** 405 with the methods that the path has. */
export function methodNotAllowed(allowed: string): Answer {
  return json(405, { error: 'method_not_allowed' }, { Allow: allowed })
}

export function isRead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** The address of the client's connection; `unix` for a peer on a Unix socket. A proxy in front is the client. */
export function clientOf({ socket }: IncomingMessage): string {
  return normalizeAddress(socket.remoteAddress ?? '') ?? UNIX_PEER
}

/** Writes the response. Node leaves the body out for HEAD. */
export function send(res: ServerResponse, { status, type, body, fields = {} }: Answer): void {
  if (res.headersSent || res.destroyed) return
  const hasLength = status !== 304 && (body !== undefined || type === undefined)
  res.writeHead(status, {
    ...(type === undefined ? {} : { 'Content-Type': type }),
    ...(hasLength ? { 'Content-Length': Buffer.byteLength(body ?? '') } : {}),
    'Cache-Control': 'no-store',
    ...fields,
  })
  res.end(body)
}
