import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import tls from 'node:tls'
import type { Case } from './case.ts'

/** The bytes that a client received, and the end of its connection: `timeout` if it never ended. */
export interface Received {
  readonly bytes: Buffer
  readonly end: 'closed' | 'broken' | 'timeout'
}

/** Much longer than any deadline of the sidecar under test, even on a busy machine (ms). */
const TIMEOUT = 15_000

/** Sends bytes on a new connection. Resolves when it is closed. */
export async function play(
  url: string,
  { writes, ending }: { readonly writes: readonly Buffer[]; readonly ending: Case['ending'] },
  { from, alpn = 'http/1.1' }: { readonly from?: string; readonly alpn?: string } = {},
): Promise<Received> {
  const { protocol, hostname, port } = new URL(url)
  const target = {
    host: hostname,
    port: Number(port),
    allowHalfOpen: true,
    ...(from === undefined ? {} : { localAddress: from }),
  }
  const secure = protocol === 'https:'
  const socket = secure
    ? tls.connect({ ...target, rejectUnauthorized: false, ALPNProtocols: [alpn] })
    : net.connect(target)
  const chunks: Buffer[] = []
  let end: Received['end'] = 'closed'
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {
    end = 'broken'
  })
  socket.once('end', () => socket.end())
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
  })
  const timer = setTimeout(() => {
    end = 'timeout'
    socket.destroy()
  }, TIMEOUT)
  await Promise.race([
    closed,
    new Promise<void>((resolve) => socket.once(secure ? 'secureConnect' : 'connect', () => resolve())),
  ])
  for (const [i, bytes] of writes.entries()) {
    // The pause makes it likely that the sidecar reads each piece separately.
    if (i > 0) await delay(1)
    if (socket.writable) socket.write(bytes)
  }
  if (ending === 'reset') {
    await delay(2)
    if (socket instanceof tls.TLSSocket) socket.destroy()
    else socket.resetAndDestroy()
  } else if (ending === 'end') socket.end()
  await closed
  clearTimeout(timer)
  return { bytes: Buffer.concat(chunks), end }
}
