import { once } from 'node:events'
import http2 from 'node:http2'
import { fieldValues } from '../../src/http/fields.ts'
import { closeLater } from './cleanup.ts'
import { drained } from './http1-client.ts'
import { createIncomingResponse } from './incoming-response.ts'
import type { Connection, Exchange, Head, Request } from './message.ts'
import { clientContext } from './raw.ts'

const bytes = (data: string | Buffer): Buffer => (typeof data === 'string' ? Buffer.from(data) : data)

function compose(request: Request, url: URL): string[] {
  const fields = (request.fields ?? []).map((item, index) => (index % 2 === 0 ? item.toLowerCase() : item))
  const authority = request.authority === undefined ? url.host : request.authority
  if (typeof request.body === 'string' || Buffer.isBuffer(request.body)) {
    if (fieldValues(fields, 'content-length').length === 0) {
      fields.push('content-length', String(bytes(request.body).length))
    }
  }
  const method = request.method ?? (request.body === undefined ? 'GET' : 'POST')
  const pseudo = [':method', method, ':path', request.path ?? '/', ':scheme', url.protocol.slice(0, -1)]
  if (authority !== null) pseudo.push(':authority', authority)
  return [...pseudo, ...fields]
}

function parseHead(raw: readonly string[]): Head {
  const fields: string[] = []
  let status = 0
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i] === ':status') status = Number(raw[i + 1])
    else fields.push(raw[i] ?? '', raw[i + 1] ?? '')
  }
  return { version: '2', status, reason: '', fields }
}

/** Connects by HTTP/2 over TLS with Node's client; request and response fields are raw. */
export async function connectHttp2(
  url: string,
  options: { readonly localAddress?: string } = {},
): Promise<Connection> {
  // `strictSingleValueFields`, which allows repeats of fields that must not repeat, is missing in Node's types.
  const settings: http2.SecureClientSessionOptions & { strictSingleValueFields: boolean } = {
    secureContext: clientContext,
    rejectUnauthorized: false,
    strictSingleValueFields: false,
    ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
  }
  const session = http2.connect(url, settings)
  session.once(
    'close',
    closeLater(() => session.destroy()),
  )
  const closed = new Promise<void>((resolve) => {
    session.once('close', resolve)
  })
  await once(session, 'connect')
  let broken = ''
  session.on('error', (error: Error) => {
    broken = ` (${error.message})`
  })

  function start(request: Request): Exchange {
    const hasBody = request.body !== undefined || request.open === true
    // Node ends a request cleanly before it resets the stream, unless trailers are pending. They make an abort an abort.
    let aborted = false
    const stream = session.request(compose(request, new URL(url)), {
      endStream: !hasBody,
      waitForTrailers: hasBody,
    })
    stream.on('wantTrailers', () => {
      if (!aborted) stream.sendTrailers({})
    })
    const incoming = createIncomingResponse(request.signal, () =>
      stream.close(http2.constants.NGHTTP2_CANCEL),
    )
    let trailers: readonly string[] = []
    let ended = false
    stream.on('headers', (_headers, _flags, raw) => incoming.inform(parseHead(raw)))
    stream.on('response', (_headers, _flags, raw) => incoming.begin(parseHead(raw)))
    stream.on('trailers', (_headers, _flags, raw) => {
      trailers = raw ?? []
    })
    stream.on('data', (chunk: Buffer) => incoming.data(chunk))
    // A response is complete if its stream ended and was not reset, or reset with NO_ERROR, by which a server says that it
    // needs no more of the request (RFC 9113 §8.1). Node emits `end` for streams that were reset with CANCEL, too.
    stream.on('end', () => {
      ended = true
    })
    stream.on('error', (error: Error) => incoming.fail(`the stream broke (${error.message})`))
    stream.on('close', () => {
      const code = stream.rstCode ?? http2.constants.NGHTTP2_NO_ERROR
      if (ended && code === http2.constants.NGHTTP2_NO_ERROR) incoming.finish(trailers)
      else incoming.fail(`the stream was reset with code ${code}${broken}`)
    })
    if (Array.isArray(request.body)) for (const piece of request.body) stream.write(bytes(piece))
    else if (request.body !== undefined) stream.write(bytes(request.body as string | Buffer)) // no list: see above
    if (hasBody && !request.open) stream.end()
    return {
      ...incoming.exchange,
      get received() {
        return incoming.exchange.received
      },
      write: (chunk) => stream.write(bytes(chunk)),
      drained: () => drained(stream),
      end(chunk) {
        if (chunk === undefined) stream.end()
        else stream.end(bytes(chunk))
      },
      pause: () => {
        stream.pause()
      },
      resume: () => {
        stream.resume()
      },
      abort: () => {
        aborted = true
        stream.close(http2.constants.NGHTTP2_CANCEL)
      },
    }
  }

  return {
    start,
    send: (request) => start(request).response,
    closed,
    close: () => session.destroy(),
  }
}
