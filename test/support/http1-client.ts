import { fieldValues } from '../../src/http/fields.ts'
import { createHttp1Reader } from './http1-reader.ts'
import { createIncomingResponse, type IncomingResponse } from './incoming-response.ts'
import type { Connection, Exchange, Request } from './message.ts'
import { rawConnection } from './raw.ts'

const bytes = (data: string | Buffer): Buffer => (typeof data === 'string' ? Buffer.from(data) : data)

const asChunk = (data: Buffer): Buffer =>
  data.length === 0
    ? data
    : Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')])

/** The head as it is sent, and whether the body is chunked. */
function compose(request: Request, authority: string): { head: Buffer; chunked: boolean } {
  const fields = [...(request.fields ?? [])]
  const has = (name: string): boolean => fieldValues(fields, name).length > 0
  const host = request.authority === undefined ? authority : request.authority
  if (host !== null && !has('host')) fields.unshift('Host', host)
  const framed = has('content-length') || has('transfer-encoding')
  let chunked = fieldValues(fields, 'transfer-encoding').some((value) => /chunked/i.test(value))
  if (!framed && (Array.isArray(request.body) || request.open)) {
    fields.push('Transfer-Encoding', 'chunked')
    chunked = true
  } else if (!framed && request.body !== undefined) {
    fields.push('Content-Length', String(bytes(request.body as string | Buffer).length)) // no list: see above
  }
  const method = request.method ?? (request.body === undefined ? 'GET' : 'POST')
  const lines = [`${method} ${request.path ?? '/'} HTTP/1.1`]
  for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
  return { head: Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), chunked }
}

/** Connects by HTTP/1.1 over TCP or TLS. Requests are sent as written, responses are parsed strictly. */
export async function connectHttp1(
  url: string,
  options: { readonly localAddress?: string } = {},
): Promise<Connection> {
  const peer = await rawConnection(url, options)
  const { socket } = peer
  const waiting: { incoming: IncomingResponse; method: string }[] = []
  const reader = createHttp1Reader(() => {
    const first = waiting[0]
    if (first === undefined) return undefined
    return {
      method: first.method,
      inform: (head) => first.incoming.inform(head),
      begin: (head) => first.incoming.begin(head),
      data: (chunk) => first.incoming.data(chunk),
      finish: (trailers) => {
        waiting.shift()
        first.incoming.finish(trailers)
      },
    }
  })
  function failAll(why: string): void {
    for (const { incoming } of waiting.splice(0)) incoming.fail(why)
  }
  socket.on('data', (chunk: Buffer) => {
    peer.forget()
    try {
      reader.feed(chunk)
    } catch (error) {
      failAll(`malformed response: ${error instanceof Error ? error.message : String(error)}`)
      socket.destroy()
    }
  })
  socket.once('close', () => {
    // A body that is framed by the end of the connection is complete only if the connection ended without an error.
    if (peer.error === undefined) reader.close()
    failAll(
      peer.error === undefined ? 'the connection closed' : `the connection broke (${peer.error.message})`,
    )
  })

  function start(request: Request): Exchange {
    const { head, chunked } = compose(request, new URL(url).host)
    const incoming = createIncomingResponse(request.signal, () => socket.destroy())
    const method = request.method ?? (request.body === undefined ? 'GET' : 'POST')
    waiting.push({ incoming, method })
    const frame = (data: string | Buffer): Buffer => (chunked ? asChunk(bytes(data)) : bytes(data))
    const last = Buffer.from(chunked ? '0\r\n\r\n' : '')
    if (socket.destroyed) failAll('the connection was closed already')
    else if (Array.isArray(request.body)) {
      socket.write(head)
      for (const piece of request.body) socket.write(frame(piece))
      if (!request.open) socket.write(last)
    } else {
      const body = request.body as string | Buffer | undefined // no list: see above
      const rest = body === undefined ? Buffer.alloc(0) : frame(body)
      socket.write(Buffer.concat([head, rest, chunked && !request.open ? last : Buffer.alloc(0)]))
    }
    return {
      ...incoming.exchange,
      get received() {
        return incoming.exchange.received
      },
      write: (chunk) => socket.write(frame(chunk)),
      drained: () => drained(socket),
      end(chunk) {
        socket.write(Buffer.concat([chunk === undefined ? Buffer.alloc(0) : frame(chunk), last]))
      },
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      abort: () => peer.reset(),
    }
  }

  return {
    start,
    send: (request) => start(request).response,
    closed: peer.closed.then(() => {}),
    close: () => socket.destroy(),
  }
}

/** Resolves when a stream accepts data again, or is closed. */
export function drained(
  stream: NodeJS.WritableStream & { readonly writableNeedDrain?: boolean },
): Promise<void> {
  if (!stream.writableNeedDrain) return Promise.resolve()
  return new Promise((resolve) => {
    stream.once('drain', resolve)
    stream.once('close', resolve)
  })
}
