import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2, { type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { sharedPair } from '../support/made-once.ts'
import type { Answer, Incoming, Reply } from './exchange.ts'

type NodeRequest = IncomingMessage | Http2ServerRequest
type NodeResponse = ServerResponse | Http2ServerResponse

/** The longest form (bytes). */
const MAX_BODY = 8192

/** A port of 127.0.0.1 that serves requests. */
export interface Listening {
  /** The origin. */
  readonly url: string
  /** Closes the port and every connection. */
  stop(): void
}

/** Serves HTTP/1.1 in cleartext, or HTTP/1.1 and HTTP/2 over TLS with the shared pair. */
export async function listen(tls: boolean, answer: Answer): Promise<Listening> {
  const onRequest = (request: NodeRequest, response: NodeResponse): void => {
    void serve(request, response, answer)
  }
  // Without these, Node answers a missing Host itself and closes idle connections that a client is about to use.
  const ours = { requireHostHeader: false, keepAliveTimeout: 0 }
  const server = tls
    ? http2.createSecureServer({ ...readPair(), allowHTTP1: true, ...ours, http1Options: ours }, onRequest)
    : http.createServer(ours, onRequest)
  const sockets = new Set<Socket>()
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP server's address is never a string
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function readPair(): { readonly cert: Buffer; readonly key: Buffer } {
  const pair = sharedPair()
  if (pair === 'auto') throw new Error('the shared pair exists only while the tests run')
  return { cert: readFileSync(pair.cert), key: readFileSync(pair.key) }
}

async function serve(request: NodeRequest, response: NodeResponse, answer: Answer): Promise<void> {
  // A client may leave at any time, also within its body: that is no fault of the server.
  request.on('error', () => {})
  response.on('error', () => {})
  let reply: Reply
  try {
    reply = await answer(incoming(request))
  } catch (error) {
    if (request.errored === error) return
    throw error
  }
  if (reply.status <= 0) breakOff(request, reply)
  else send(request, response, reply)
}

/** Resets the stream in HTTP/2, closes the connection in HTTP/1. */
function breakOff(request: NodeRequest, { status }: Reply): void {
  const { NGHTTP2_INTERNAL_ERROR: broken, NGHTTP2_REFUSED_STREAM: refused } = http2.constants
  if ('stream' in request) request.stream.close(status === 0 ? broken : refused)
  else request.socket.destroy()
}

function send(request: NodeRequest, response: NodeResponse, reply: Reply): void {
  response.sendDate = false
  const headers: http.OutgoingHttpHeaders = { 'Content-Length': Buffer.byteLength(reply.body) }
  for (const [name, value] of Object.entries(reply.fields))
    headers[name] = typeof value === 'string' ? value : [...value]
  // The two overloads of `writeHead` have no common type.
  if ('stream' in response) response.writeHead(reply.status, headers)
  else response.writeHead(reply.status, headers)
  response.end(request.method === 'HEAD' ? '' : reply.body)
}

function incoming(request: NodeRequest): Incoming {
  const version = request.httpVersionMajor === 2 ? '2' : '1'
  const fields = foldRaw(request.rawHeaders)
  const authority = fields.get(':authority')
  if (authority !== undefined && !fields.has('host')) fields.set('host', authority)
  // A target in absolute form names the same resource (RFC 9112 §3.2.2).
  const target = (request.url ?? '/').replace(/^https?:\/\/[^/?]*/i, '') || '/'
  const mark = target.indexOf('?')
  const { socket } = request
  let body: Promise<string | undefined> | undefined
  return {
    method: request.method ?? 'GET',
    path: mark === -1 ? target : target.slice(0, mark),
    query: mark === -1 ? '' : target.slice(mark),
    fields,
    version,
    address: socket.remoteAddress ?? '',
    connection: 'stream' in request ? (request.stream.session ?? socket) : socket,
    body() {
      body ??= readBody(request)
      return body
    },
  }
}

function foldRaw(raw: readonly string[]): Map<string, readonly string[]> {
  const fields = new Map<string, readonly string[]>()
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase()
    fields.set(name, [...(fields.get(name) ?? []), raw[i + 1] ?? ''])
  }
  return fields
}

/** Reads to the end, so that the connection can be used again, and keeps no more than a form may have. */
async function readBody(request: NodeRequest): Promise<string | undefined> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length
    if (length <= MAX_BODY) pieces.push(piece)
  }
  return length > MAX_BODY ? undefined : Buffer.concat(pieces).toString('latin1')
}
