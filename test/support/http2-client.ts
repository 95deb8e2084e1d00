import { once } from 'node:events'
import http2 from 'node:http2'
import { fieldValues } from '../../src/http/fields.ts'
import { createAnswer } from './answer.ts'
import { closeLater } from './cleanup.ts'
import { drained } from './http1-client.ts'
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

/** HTTP/2 over TLS through Node's client, with raw fields both ways. */
export async function connectHttp2(
  url: string,
  options: { readonly localAddress?: string } = {},
): Promise<Connection> {
  // Node's types do not know yet that a client may send repeats of fields that must not repeat.
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
    // Node ends a request cleanly before it resets it, unless trailers are owed: so an abort is an abort.
    let aborted = false
    const stream = session.request(compose(request, new URL(url)), {
      endStream: !hasBody,
      waitForTrailers: hasBody,
    })
    stream.on('wantTrailers', () => {
      if (!aborted) stream.sendTrailers({})
    })
    const answer = createAnswer(request.timeout ?? 10_000, () => stream.close(http2.constants.NGHTTP2_CANCEL))
    let trailers: readonly string[] = []
    let ended = false
    stream.on('headers', (_headers, _flags, raw) => answer.inform(parseHead(raw)))
    stream.on('response', (_headers, _flags, raw) => answer.begin(parseHead(raw)))
    stream.on('trailers', (_headers, _flags, raw) => {
      trailers = raw ?? []
    })
    stream.on('data', (chunk: Buffer) => answer.data(chunk))
    // An answer is whole if its stream ended and was not reset, or reset with NO_ERROR, by which a server says that it
    // wants no more of the request (RFC 9113 §8.1). Node reports an `end` for streams reset with CANCEL, too.
    stream.on('end', () => {
      ended = true
    })
    stream.on('error', (error: Error) => answer.fail(`the stream broke (${error.message})`))
    stream.on('close', () => {
      const code = stream.rstCode ?? http2.constants.NGHTTP2_NO_ERROR
      if (ended && code === http2.constants.NGHTTP2_NO_ERROR) answer.finish(trailers)
      else answer.fail(`the stream was reset with code ${code}${broken}`)
    })
    if (Array.isArray(request.body)) for (const piece of request.body) stream.write(bytes(piece))
    else if (request.body !== undefined) stream.write(bytes(request.body as string | Buffer)) // lists were dealt with
    if (hasBody && !request.open) stream.end()
    return {
      ...answer.exchange,
      get received() {
        return answer.exchange.received
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
