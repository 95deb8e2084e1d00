import type { IncomingMessage, ServerResponse } from 'node:http'
import { UNIX_PEER } from '../gate/client-address.ts'
import { STYLE_SOURCE } from '../http/html.ts'
import { normalizeAddress } from '../http/ip.ts'
import { wireOf } from './admin-wire.ts'

export interface AdminResponse {
  readonly status: number
  /** The media type; undefined if there is no body. */
  readonly type?: string
  /** Undefined although there is a type: the response to HEAD for a stream, which has no length. */
  readonly body?: string | Buffer
  /** Further fields. `Cache-Control` is `no-store` unless they contain it. */
  readonly fields?: Readonly<Record<string, string>>
}

/**
 * The fields of every response of the page. `Referrer-Policy` is not `no-referrer`: with that, browsers would send `Origin: null` with the
 * page's own forms (Fetch, "append a request Origin header"), as for a page of another site.
 */
export const PAGE_FIELDS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': `default-src 'none'; script-src 'self'; style-src 'self' ${STYLE_SOURCE}; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

export function json(
  status: number,
  value: object,
  fields: Readonly<Record<string, string>> = {},
): AdminResponse {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n`, fields }
}

/** An error: a stable code, and a sentence for people. */
export function errorResponse(
  status: number,
  error: string,
  description: string,
  fields: Readonly<Record<string, string>> = {},
): AdminResponse {
  return json(status, { error, error_description: description }, fields)
}

/** 503: only the shared store knows, and it does not answer. */
export function storeUnavailable(description: string): AdminResponse {
  return errorResponse(503, 'store_unavailable', description, { 'Retry-After': '5' })
}

/** 503 to a command of the control socket: only the shared store knows, and it does not answer. */
export const STORE_SILENT: AdminResponse = json(503, {
  error: 'the shared store does not respond, or refuses the command: /readyz says which',
})

export function methodNotAllowed(allowed: string): AdminResponse {
  return json(405, { error: 'method_not_allowed' }, { Allow: allowed })
}

/** The address of the peer, `unix` on a Unix socket. Behind a proxy, that is the proxy. */
export function clientOf({ socket }: IncomingMessage): string {
  return normalizeAddress(wireOf(socket).remoteAddress ?? '') ?? UNIX_PEER
}

/** Writes the response, unless one has begun or the client has left. Node leaves the body out for HEAD. */
export function send(res: ServerResponse, { status, type, body, fields = {} }: AdminResponse): void {
  if (res.headersSent || res.destroyed) return
  const hasLength = status !== 304 && (body !== undefined || type === undefined)
  res.writeHead(status, {
    ...(type === undefined ? {} : { 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' }),
    ...(hasLength ? { 'Content-Length': Buffer.byteLength(body ?? '') } : {}),
    'Cache-Control': 'no-store',
    ...fields,
  })
  res.end(body)
}

/** The longest body of a request to the page (bytes). */
const LARGEST_BODY = 4096

/**
 * Reads a request body of at most 4 KiB. Undefined if it is longer: the rest is drained, and the response should be `tooLarge`.
 * The request timeout of the listener ends a slow body. Rejects with `ClientGone` if the client leaves before the end.
 */
export async function readSmallBody(req: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk)
      size += chunk.length
      if (size > LARGEST_BODY) break
    }
  } catch {
    throw new ClientGone()
  }
  if (size <= LARGEST_BODY) return Buffer.concat(chunks)
  req.resume()
  return undefined
}

/** 413. The connection closes, so the client does not send the rest. */
export function tooLarge(): AdminResponse {
  return errorResponse(413, 'content_too_large', 'The body is longer than 4 KiB.', { Connection: 'close' })
}

/** The client left before its response. This is no bug, and no response is possible. */
export class ClientGone extends Error {}
