import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import {
  FRAME,
  frame,
  headers,
  PREFACE,
  requestFields,
  SETTINGS_ACK,
  settings,
  windowUpdate,
} from '../../test/support/http2-frames.ts'
import { runIfMain, runModule } from '../child.ts'
import { clientSecretIn, recordsOfOneByte } from './tls-records.ts'

/** What one client may do to keep the sidecar busy. */
export type Attack =
  | 'pipelined requests'
  | 'chunks of one byte'
  | 'reads of /metrics'
  | 'DATA frames of one byte'
  | 'window updates'
  | 'TLS records of one byte'

/** Connections of one client that attack, as fast as the sidecar reads. One that is closed is opened again. */
export interface HostileLoad {
  readonly attack: Attack
  /** Of the public listener; for `/metrics`, of the admin listener. */
  readonly url: string
  /** Sent with uploads, which are refused without a token. All other attacks have none. */
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly seconds: number
  /** Address of the client. */
  readonly address: string
}

export interface HostileReport {
  /** Connections that were opened. */
  readonly opened: number
  /** Responses over HTTP/1. */
  readonly answered: number
  /** Bytes that were sent. */
  readonly sent: number
}

/** Runs them in a process of its own, which gives way to other processes on its core. */
export function runHostile(load: HostileLoad, core: number | undefined): Promise<HostileReport> {
  return runModule(import.meta.url, load, {
    core,
    idlePriority: true,
    timeout: (load.seconds + 30) * 1000,
  })
}

/** What a connection sends: `first` once, then `again` without end. */
interface Script {
  readonly alpn?: 'h2' | 'http/1.1'
  readonly first: Buffer
  readonly again: Buffer
  /** `again` is sent when what was asked for has been answered, and not as soon as it can be written. */
  readonly waits?: true
  /** Each byte is a TLS record of its own. */
  readonly records?: true
}

/** What a connection sends at once (bytes). */
const BURST = 64 * 1024
const repeated = (text: Buffer): Buffer => Buffer.alloc(Math.ceil(BURST / text.length) * text.length, text)

/** Chunks of one upload, which is collected up to 1 MiB, and records that are made at once. */
const CHUNKS = 20_000
const RECORDS = 2_000

/** How long a connection that was closed waits before it is opened again (ms). */
const REOPENED_AFTER = 50

function scriptOf({ attack, url, headers: own }: HostileLoad): Script {
  const { hostname } = new URL(url)
  const fields = Object.entries(own).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = (line: string, ...more: string[]): Buffer =>
    Buffer.from(`${line} HTTP/1.1\r\nHost: ${hostname}\r\n${more.join('')}\r\n`)
  const none = Buffer.alloc(0)
  if (attack === 'pipelined requests') return { first: none, again: repeated(head('GET /')) }
  if (attack === 'reads of /metrics') return { first: none, again: head('GET /metrics'), waits: true }
  if (attack === 'chunks of one byte') {
    const upload = head('POST /', ...fields, 'Transfer-Encoding: chunked\r\n')
    const chunks = Buffer.from(`${'1\r\nx\r\n'.repeat(CHUNKS)}0\r\n\r\n`)
    return { first: none, again: Buffer.concat([upload, chunks]) }
  }
  if (attack === 'TLS records of one byte') {
    const request = head('GET /')
    const again = Buffer.alloc(request.length * Math.ceil(RECORDS / request.length), request)
    return { alpn: 'http/1.1', first: request, again, records: true }
  }
  const opening = Buffer.concat([PREFACE, settings(), SETTINGS_ACK, headers(1, requestFields(), false)])
  const one = attack === 'window updates' ? windowUpdate(0, 1) : frame(FRAME.data, 0, 1, Buffer.from('x'))
  return { alpn: 'h2', first: opening, again: repeated(one) }
}

async function program(load: HostileLoad): Promise<HostileReport> {
  const script = scriptOf(load)
  const { hostname, port } = new URL(load.url)
  const report = { opened: 0, answered: 0, sent: 0 }
  let over = false
  const sockets = new Set<Socket>()

  function open(): void {
    if (over) return
    const wire = connect({ host: hostname, port: Number(port), localAddress: load.address, noDelay: true })
    sockets.add(wire)
    wire.on('error', () => {})
    wire.once('close', () => {
      sockets.delete(wire)
      setTimeout(open, REOPENED_AFTER)
    })
    if (script.alpn === undefined) wire.once('connect', () => attack(wire, wire, () => script.again))
    else openTls(wire, script.alpn)
  }

  function openTls(wire: Socket, alpn: string): void {
    let secret: Buffer | undefined
    const ciphers = script.records
      ? { ciphers: 'TLS_AES_128_GCM_SHA256', minVersion: 'TLSv1.3' as const }
      : {}
    const socket = connectTls({ socket: wire, rejectUnauthorized: false, ALPNProtocols: [alpn], ...ciphers })
    socket.on('error', () => wire.destroy())
    socket.on('keylog', (line: Buffer) => (secret ??= clientSecretIn(line)))
    socket.once('secureConnect', () => {
      // The first record of the secret is the head of the request.
      let count = 1
      const records = (): Buffer => {
        const made = recordsOfOneByte(secret ?? Buffer.alloc(32), script.again, count)
        count += script.again.length
        return made
      }
      if (script.records) attack(socket, wire, records)
      else attack(socket, socket, () => script.again)
    })
  }

  /** @param socket what is read; it carries `first`, and `out` all that follows */
  function attack(socket: Socket, out: Socket, next: () => Buffer): void {
    report.opened += 1
    let rest = ''
    const send = (): void => {
      if (over || out.destroyed) return
      const bytes = next()
      report.sent += bytes.length
      // The other connections have their turn between two bursts.
      if (out.write(bytes) && !script.waits) setImmediate(send)
    }
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      const count = text.split('HTTP/1.1 ').length - 1
      report.answered += count
      // A status that is cut counts with the next bytes.
      rest = /H?T?T?P?\/?1?\.?1?$/.exec(text)?.[0] ?? ''
      if (script.waits) for (let i = 0; i < count; i += 1) send()
    })
    if (script.first.length > 0) socket.write(script.first, send)
    else send()
    if (!script.waits) out.on('drain', send)
  }

  for (let i = 0; i < load.connections; i += 1) open()
  await pause(load.seconds * 1000)
  over = true
  for (const socket of sockets) socket.destroy()
  return report
}

await runIfMain(import.meta, program)
