import { connect } from 'node:net'
import process from 'node:process'
import type { Transfer, TransferReport } from './transfer.ts'

/** `node transfer-program.ts PLAN`: runs a `Transfer`, and prints a `TransferReport` as JSON. */
const { port, headers, direction, bytes } = JSON.parse(process.argv[2] ?? '{}') as Transfer // of `transfer`
const PIECE = Buffer.alloc(1 << 20, 'x')

let head = ''
/** Bytes of the response body so far, and its first 100 characters. */
let received = 0
let text = ''

const begin = performance.now()
const socket = connect({
  port,
  host: '127.0.0.1',
  onread: {
    buffer: Buffer.alloc(1 << 20),
    callback(length, buffer) {
      read(Buffer.from(buffer.buffer, buffer.byteOffset, length))
      return true
    },
  },
})
socket.on('connect', () => {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const line = direction === 'up' ? 'POST / HTTP/1.1' : `GET /bytes/${bytes} HTTP/1.1`
  const length = direction === 'up' ? `Content-Length: ${bytes}\r\n` : ''
  socket.write(`${line}\r\nHost: device\r\nConnection: close\r\n${length}${lines.join('')}\r\n`)
  if (direction === 'up') send(bytes)
})
socket.on('error', (error) => finish(error.message))
socket.on('end', () => finish(faultOf()))

function send(bytesLeft: number): void {
  let left = bytesLeft
  while (left > 0) {
    const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE
    left -= piece.length
    if (!socket.write(piece)) break
  }
  if (left > 0) socket.once('drain', () => send(left))
}

function read(chunk: Buffer): void {
  if (text === '' && received === 0 && !head.includes('\r\n\r\n')) {
    head += chunk.toString('latin1')
    const end = head.indexOf('\r\n\r\n')
    if (end >= 0) {
      received = head.length - end - 4
      text = head.slice(end + 4, end + 100)
      head = head.slice(0, end + 4)
    }
    return
  }
  received += chunk.length
  if (text.length < 100) text += chunk.toString('latin1', 0, 100)
}

function faultOf(): string | undefined {
  const line = head.slice(0, head.indexOf('\r\n'))
  if (!line.startsWith('HTTP/1.1 200 ')) return `${direction}: ${line} ${text.slice(0, 100)}`
  if (direction === 'up')
    return text === String(bytes) ? undefined : `up: the device received ${text} of ${bytes} bytes`
  return received === bytes ? undefined : `down: received ${received} of ${bytes} bytes`
}

function finish(fault: string | undefined): void {
  const report: TransferReport = {
    seconds: (performance.now() - begin) / 1000,
    ...(fault === undefined ? {} : { fault }),
  }
  process.stdout.write(JSON.stringify(report))
  process.exit(0)
}
