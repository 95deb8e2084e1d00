import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { runIfMain, runModule } from '../child.ts'

/** One large body: up to `/` of the device, which counts the bytes, or down from `/bytes/SIZE`. */
export interface Transfer {
  readonly port: number
  /** Over TLS; any certificate will do. */
  readonly secure: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly direction: 'up' | 'down'
  readonly bytes: number
}

export interface TransferReport {
  readonly seconds: number
  /** Another status or another number of bytes; none if the transfer was correct. */
  readonly faults: readonly string[]
}

/** Milliseconds. */
const TIMEOUT = 120_000

/** Runs a client of our own, on a bare socket, in a separate process: autocannon buffers every body. */
export function transfer(plan: Transfer, core: number | undefined): Promise<TransferReport> {
  return runModule(import.meta.url, plan, { core, timeout: TIMEOUT })
}

const PIECE = Buffer.alloc(1 << 20, 'x')

async function program({ port, secure, headers, direction, bytes }: Transfer): Promise<TransferReport> {
  const up = direction === 'up'
  /** The head and the first bytes of the body, and the length of the whole body so far. */
  let text = ''
  let received = 0
  const { promise, resolve } = Promise.withResolvers<string[]>()
  const begin = performance.now()
  const read = (chunk: Buffer): void => {
    const end = text.indexOf(END)
    if (end >= 0) received += chunk.length
    if (text.length > 4_096) return
    text += chunk.toString('latin1', 0, end < 0 ? chunk.length : 100)
    if (end < 0 && text.includes(END)) received = text.length - text.indexOf(END) - END.length
  }
  const socket = secure ? openSecurely(port, read) : open(port, read)
  const send = (bytesLeft: number): void => {
    let left = bytesLeft
    while (left > 0) {
      const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE
      left -= piece.length
      if (!socket.write(piece)) break
    }
    if (left > 0) socket.once('drain', () => send(left))
  }
  socket.on(secure ? 'secureConnect' : 'connect', () => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const line = up ? 'POST / HTTP/1.1' : `GET /bytes/${bytes} HTTP/1.1`
    const length = up ? `Content-Length: ${bytes}\r\n` : ''
    socket.write(`${line}\r\nHost: device\r\nConnection: close\r\n${length}${lines.join('')}\r\n`)
    if (up) send(bytes)
  })
  socket.on('error', (error) => resolve([error.message]))
  socket.on('end', () => {
    const body = text.slice(text.indexOf(END) + END.length)
    const [is, wanted] = up ? [body, String(bytes)] : [received, bytes]
    if (!text.startsWith('HTTP/1.1 200 ')) resolve([text.slice(0, 100)])
    else resolve(is === wanted ? [] : [`${is} of ${bytes} bytes arrived`])
  })
  const faults = await promise
  return { seconds: (performance.now() - begin) / 1000, faults }
}

const END = '\r\n\r\n'

function open(port: number, read: (bytes: Buffer) => void): Socket {
  const buffer = Buffer.alloc(1 << 20)
  const callback = (length: number): boolean => {
    read(buffer.subarray(0, length))
    return true
  }
  return connect({ port, host: '127.0.0.1', onread: { buffer, callback } })
}

function openSecurely(port: number, read: (bytes: Buffer) => void): Socket {
  const options = { port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }
  return connectTls(options).on('data', read)
}

await runIfMain(import.meta, program)
